/**
 * A program that is the device, or controls it. It reads one instruction per line from its standard input, as JSON with an
 * `id`, and writes a line of JSON with that `id` when it has done it. Its other lines are its log.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { parseJson } from "../../device-kit/guards.ts";
import { clientLimits } from "../../limits.ts";
import { Mismatch } from "../expect.ts";
import { CannotRun } from "../world.ts";
import type { DeviceUnderTest, PaymentAct, Shown } from "./device.ts";

const shownSchema = z.object({ state: z.string(), amount: z.string(), qr_payload: z.string().optional() });
const answerSchema = z.object({ id: z.int(), shown: shownSchema.optional() });
type Answer = z.infer<typeof answerSchema>;

export class DeviceProgram implements DeviceUnderTest {
  readonly stepMs = clientLimits.conformanceDeviceMs;
  readonly #command: string;
  readonly #log: (line: string) => void;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #child: ChildProcess | undefined;
  #nextId = 1;

  constructor(command: string, log: (line: string) => void) {
    this.#command = command;
    this.#log = log;
  }

  async enroll({ baseUrl, code }: { readonly baseUrl: string; readonly code: string }): Promise<void> {
    await this.#instruct({ instruction: "enroll", base_url: baseUrl, code });
  }

  async payments(act: PaymentAct): Promise<void> {
    await this.#instruct({ instruction: "payments", act });
  }

  async finish(): Promise<void> {
    await this.#instruct({ instruction: "finish" });
  }

  /** Kills the program and starts it again with the same command. The program then has only its stored data. */
  async restart(): Promise<void> {
    await this.stop();
    this.#start();
  }

  async shown(): Promise<Shown> {
    const { shown } = await this.#instruct({ instruction: "shown" });
    if (shown === undefined) throw new Mismatch("answer of the program", "`shown`", undefined);
    return shown;
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
    // Kills the process group, because a shell has started the program.
    process.kill(-child.pid, "SIGKILL");
    // A child of the program with its own process group may keep the output open.
    await Promise.race([ended, delay(clientLimits.backoffFirstMs)]);
    child.stdout?.destroy();
  }

  #start(): ChildProcess {
    const child = spawn(this.#command, { shell: true, detached: true, stdio: ["pipe", "pipe", "inherit"] });
    // A write to a program that has ended fails, and its instruction gets no answer.
    child.stdin.on("error", () => undefined);
    child.on("error", () => undefined);
    createInterface(child.stdout).on("line", (line) => this.#read(line));
    this.#child = child;
    return child;
  }

  #read(line: string): void {
    const answer = answerSchema.safeParse(parseJson(line)).data;
    if (answer === undefined) this.#log(line);
    else this.#waiting.get(answer.id)?.(answer);
  }

  async #instruct(instruction: object): Promise<Answer> {
    const child = this.#child ?? this.#start();
    const id = this.#nextId++;
    const done = Promise.withResolvers<Answer>();
    this.#waiting.set(id, done.resolve);
    const refuse = (why: string) => done.reject(new CannotRun(`The device's program ${why}.`));
    const timer = setTimeout(() => refuse(`does not answer ${JSON.stringify(instruction)}`), this.stepMs);
    const ended = () => refuse("has ended");
    child.once("close", ended);
    try {
      child.stdin?.write(`${JSON.stringify({ id, ...instruction })}\n`);
      return await done.promise;
    } finally {
      clearTimeout(timer);
      child.off("close", ended);
      this.#waiting.delete(id);
    }
  }
}
