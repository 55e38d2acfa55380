/**
 * Runs the conformance suite for the back office. It is the program that a person runs, in a separate process, so that
 * it uses HTTP only and does not use the registry's memory. When this process ends, the suite cleans up and ends as
 * well.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { type ConformanceCheck, conformanceCheckSchema } from "../bus/messages/conformance-runs.ts";
import { failuresOf } from "../bus/outage.ts";
import type { Conformance, RegistryDeps, StartedRun } from "./deps.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import * as sql from "./sql/conformance-runs.ts";

const PROGRAM = join(import.meta.dirname, "..", "..", "clients", "conformance.ts");
/** What the suite needs from this process's environment: how Node starts, and which certificates it trusts. */
const INHERITED = ["PATH", "NODE_OPTIONS", "NODE_COMPILE_CACHE", "NODE_EXTRA_CA_CERTS"];
const { conformanceRun: LIMITS } = REGISTRY_LIMITS;

const resultSchema = z.object({
  suite_version: z.string(),
  contract_sha256: z.string(),
  left_behind: z.array(z.string()),
});
const lineSchema = z.union([z.object({ check: conformanceCheckSchema }), z.object({ result: resultSchema })]);
const STATUS_OF_EXIT: Readonly<Record<number, sql.RunEnd["status"]>> = {
  0: "passed",
  1: "failed",
  2: "could_not_run",
  3: "left_behind",
};

type RunnerDeps = Pick<RegistryDeps, "sql" | "log" | "settings">;

export class ConformanceRunner implements Conformance {
  readonly #deps: RunnerDeps;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #running = new Map<ChildProcess, Promise<void>>();
  #isStopping = false;

  constructor(deps: RunnerDeps, environment: NodeJS.ProcessEnv) {
    this.#deps = deps;
    this.#environment = environment;
  }

  get hasPlace(): boolean {
    return !this.#isStopping && this.#running.size < LIMITS.atOnce;
  }

  start(run: StartedRun): void {
    const child = spawn(process.execPath, [PROGRAM, "--sandbox", String(run.sandboxId), "--json"], {
      env: this.#environmentOf(run),
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    const ended = this.#follow(child, run).catch((error: unknown) => {
      this.#deps.log.error({ err: error, runId: run.runId }, "a conformance run could not be followed");
    });
    this.#running.set(child, ended);
    void ended.then(() => this.#running.delete(child));
  }

  /**
   * Ends the runs of this process. The suite notices the closed channel and cleans up without this process, because it
   * needs this service and others, which restart meanwhile.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const child of this.#running.keys()) {
      if (child.connected) child.disconnect();
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.unref();
    }
    await Promise.all(this.#running.values());
  }

  #environmentOf({ token }: StartedRun): NodeJS.ProcessEnv {
    const { CONFORMANCE_BASE_URL, GATEWAY_CERTIFICATE_FILE } = this.#deps.settings;
    const inherited = INHERITED.flatMap((name) => {
      const value = this.#environment[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      ...Object.fromEntries(inherited),
      BASE_URL: CONFORMANCE_BASE_URL,
      SESSION_TOKEN: token,
      ...(GATEWAY_CERTIFICATE_FILE === undefined ? {} : { GATEWAY_CERTIFICATE_FILE }),
    };
  }

  async #follow(child: ChildProcess, run: StartedRun): Promise<void> {
    const seen = new Seen(child);
    const closed = new Promise<number | undefined>((resolve) => {
      child.once("error", () => resolve(undefined));
      // `stop` disconnects the suite; this process then no longer waits for its end.
      child.once("disconnect", () => this.#isStopping && resolve(undefined));
      child.once("close", (code) => resolve(code ?? undefined));
    });
    let isEndAsked = false;
    let stored = 0;
    const unrenewed = failuresOf(this.#deps.log, "a conformance run could not be renewed");
    const tick = async (): Promise<void> => {
      const checks = [...seen.checks];
      const goesOn = await sql.renewRun(this.#deps.sql, run.runId, {
        checks: checks.length === stored ? undefined : checks,
        leaseMs: LIMITS.leaseMs,
      });
      stored = checks.length;
      if (goesOn || isEndAsked) return;
      isEndAsked = true;
      child.kill("SIGINT");
    };
    const late = setTimeout(() => child.kill("SIGINT"), LIMITS.mostMs);
    const tooLate = setTimeout(() => child.kill("SIGKILL"), LIMITS.mostMs + LIMITS.cleanUpMs);
    let code: number | "goes on" | undefined = "goes on";
    try {
      while (code === "goes on") {
        // While the database does not answer, only the stored checks are late.
        await tick().catch((error: unknown) => unrenewed.failed(error, { runId: run.runId }));
        code = await Promise.race([closed, pause(LIMITS.tickMs)]);
      }
    } finally {
      clearTimeout(late);
      clearTimeout(tooLate);
    }
    await this.#storeEnd(run, async () => {
      await tick();
      await sql.endRun(this.#deps.sql, run.runId, this.#endOf(seen, { code, isEndAsked }));
    });
    // A suite that still cleans up needs its session.
    if (!this.#isStopping) await run.onEnd();
  }

  /** Repeats the write while the database does not answer: without it a run that has passed counts as interrupted. */
  async #storeEnd({ runId }: StartedRun, write: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await write();
      } catch (error) {
        if (attempt === LIMITS.endAttempts || this.#isStopping) throw error;
        failuresOf(this.#deps.log, "the end of a conformance run could not be stored").failed(error, { runId });
        await pause(LIMITS.tickMs);
      }
    }
  }

  #endOf(
    seen: Seen,
    { code, isEndAsked }: { readonly code: number | undefined; readonly isEndAsked: boolean },
  ): sql.RunEnd {
    const { result } = seen;
    const statusOfExit = code === undefined ? undefined : STATUS_OF_EXIT[code];
    // `left_behind` comes before every other status, also when an owner ended the run, and when the run has no result.
    const isLeftBehind = statusOfExit === "left_behind" || (result !== undefined && result.left_behind.length > 0);
    const status = isEndAsked ? "ended" : (statusOfExit ?? "interrupted");
    return {
      status: isLeftBehind ? "left_behind" : this.#isStopping ? "interrupted" : status,
      leftBehind: result?.left_behind ?? [],
      suiteVersion: result?.suite_version ?? null,
      contractSha256: result?.contract_sha256 ?? null,
      problem: this.#isStopping ? "The process that ran it has ended." : seen.problem,
    };
  }
}

/** What the suite has written so far. */
class Seen {
  result: z.infer<typeof resultSchema> | undefined;
  readonly #checks: ConformanceCheck[] = [];
  #problem = "";

  constructor({ stdout, stderr }: ChildProcess) {
    if (stdout !== null) createInterface(stdout).on("line", (line) => this.#read(line));
    stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#problem = (this.#problem + text).slice(0, LIMITS.problemCharacters);
    });
  }

  get problem(): string | null {
    return this.#problem.trim() || null;
  }

  get checks(): readonly ConformanceCheck[] {
    return this.#checks;
  }

  #read(line: string): void {
    const read = lineSchema.safeParse(jsonOf(line)).data;
    if (read === undefined) return;
    if ("check" in read) this.#checks.push(read.check);
    else this.result = read.result;
  }
}

/**
 * Undefined where the line is no JSON: a module that `NODE_OPTIONS` names has printed it, or the program was killed
 * while it wrote.
 */
function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const pause = (ms: number): Promise<"goes on"> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms, "goes on");
  });
