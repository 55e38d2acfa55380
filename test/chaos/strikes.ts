/** Kills processes of a running system with SIGKILL and starts them again, repeatedly, at moments that a seed selects. */
import { setTimeout as delay } from "node:timers/promises";
import { isRunning } from "../support/running-program.ts";
import type { TestServer } from "../support/servers.ts";
import type { TestProcess } from "../support/test-process.ts";
import type { Random } from "./random.ts";

export const TARGETS = ["stations", "gateway", "services", "providers", "sandboxProvider", "nats", "postgres"] as const;
export type Target = (typeof TARGETS)[number];
type Server = "nats" | "postgres";
/** What can be killed. */
export type Pieces = Readonly<Record<Server, Pick<TestServer, "kill9" | "restart">>> &
  Readonly<Record<Exclude<Target, Server>, TestProcess>>;

/** Steps that the clients begin between the end of one strike and the next. */
const LEAST_STEPS_BETWEEN = 15;
const MOST_STEPS_BETWEEN = 75;
/** The longest time from a step to its strike. It is about as long as a command, so a strike may come at any moment of one. */
const LONGEST_FUSE_MS = 40;
/** The longest time until a killed process is started again. */
const LONGEST_DOWN_MS = 1_200;
/** The probability that two processes are killed at once. */
const PAIR_PROBABILITY = 0.25;

export class Strikes {
  readonly counts = new Map<Target, number>(TARGETS.map((target) => [target, 0]));
  /** The longest time from a kill to the moment when every process is ready again. */
  longestDownMs = 0;
  readonly #pieces: Pieces;
  readonly #log: (piece: string) => string;
  readonly #random: Random;
  readonly #mostKills: number;
  #deck: Target[] = [];
  #stepsLeft: number;
  #underWay: Promise<void> | undefined;
  #isOver = false;

  /** `log` returns the log of a process, for the error about one that ended without a kill. `mostKills` limits the kills. */
  constructor(
    pieces: Pieces,
    log: (piece: string) => string,
    { random, mostKills = Infinity }: { readonly random: Random; readonly mostKills?: number },
  ) {
    this.#pieces = pieces;
    this.#log = log;
    this.#random = random;
    this.#mostKills = mostKills;
    this.#stepsLeft = random.between(1, LEAST_STEPS_BETWEEN);
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** A client calls this at the beginning of a step. Some steps trigger a strike. */
  step(): void {
    if (this.#isOver || this.#underWay !== undefined || this.total >= this.#mostKills) return;
    this.#stepsLeft -= 1;
    if (this.#stepsLeft > 0) return;
    this.#underWay = (async () => {
      await this.#strike();
      this.#stepsLeft = this.#random.between(LEAST_STEPS_BETWEEN, MOST_STEPS_BETWEEN);
      this.#underWay = undefined;
    })();
    // `end()` reports a process that did not start again.
    this.#underWay.catch(() => undefined);
  }

  /** Resolves when the processes of the current strike run again. */
  async restarted(): Promise<void> {
    await this.#underWay;
  }

  /** Ends the strikes. Resolves when all processes run again. Rejects when one did not start again or ended without a kill. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#underWay;
    for (const target of TARGETS) this.#requireRunning(target);
  }

  async #strike(): Promise<void> {
    const targets = [this.#draw()];
    if (this.#random.chance(PAIR_PROBABILITY)) {
      const second = this.#draw();
      if (second !== targets[0]) targets.push(second);
    }
    const fuseMs = this.#random.between(0, LONGEST_FUSE_MS);
    const downMs = this.#random.between(0, LONGEST_DOWN_MS);
    await delay(fuseMs);
    for (const target of targets) this.#requireRunning(target);
    const struckAtMs = performance.now();
    await Promise.all(targets.map((target) => this.#pieces[target].kill9()));
    for (const target of targets) this.counts.set(target, (this.counts.get(target) ?? 0) + 1);
    await delay(downMs);
    await Promise.all(targets.map((target) => this.#pieces[target].restart()));
    this.longestDownMs = Math.max(this.longestDownMs, performance.now() - struckAtMs);
  }

  /** Draws each process equally often, each time in another order. */
  #draw(): Target {
    if (this.#deck.length === 0) this.#deck = this.#random.shuffled(TARGETS);
    return this.#deck.pop() as Target;
  }

  /** Throws when a process has ended without a kill, because a process must survive the loss of any other one. */
  #requireRunning(target: Target): void {
    if (target === "nats" || target === "postgres" || isRunning(this.#pieces[target].pid())) return;
    throw new Error(`The process "${target}" ended by itself; the end of its log:\n${this.#log(target).slice(-3_000)}`);
  }
}
