/** Starts the steps of `npm start` in order, and stops them in the reverse order. */
import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";
import { cannotGoOn } from "../services/runtime/fault.ts";
import { errorCode, UserError } from "../services/runtime/user-error.ts";
import { deployLimits } from "./limits.ts";
import { appendToLog, type LogSpec } from "./log-files.ts";

/** Undoes a step. When `immediately` is or becomes aborted, it stops draining and ends at once. */
export type StopStep = (immediately: AbortSignal) => Promise<void>;

/** What a step may use while it starts and runs. */
export interface StepControl {
  /** Reports that something the step started ended by itself: everything is stopped, and the exit code shows it. */
  fail: (error: UserError) => void;
  /** Aborted as soon as everything is to stop; a start that waits for something ends its wait then. */
  stopping: AbortSignal;
}

/** One named part of a running system. */
export interface Step {
  name: string;
  /** Starts it and returns how to stop it. It limits its own waiting. */
  start: (control: StepControl) => Promise<StopStep | undefined>;
}

interface SuperviseOptions {
  steps: Step[];
  /** Prints one line for a person. */
  print: (line: string) => void;
  /** Where the details of an error go. */
  log: LogSpec | undefined;
  /** How long stopping one step may take; a setting only for tests. */
  stepStopMs?: number;
}

const KEEP_ALIVE_MS = 60_000;
const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Starts the steps in order, waits for a stop signal, the end of the parent process or a failure, and stops what was
 * started in reverse order. A second signal ends the draining. After Ctrl-C, or during the start, it ends after a short time.
 * Returns the exit code: 0 after an orderly stop, otherwise the error's.
 */
export async function supervise(options: SuperviseOptions): Promise<number> {
  const stopping = new AbortController();
  const immediately = new AbortController();
  const failures: unknown[] = [];
  const fail = (error: unknown) => {
    if (stopping.signal.aborted) return;
    failures.push(error);
    reportError(error, options.log);
    stopping.abort();
  };
  let isStarting = true;
  const onSignal = (signal: string) => {
    if (stopping.signal.aborted) return immediately.abort();
    options.print(`Stopping (${signal}) …`);
    stopping.abort();
    if (signal === "SIGINT" || isStarting) setTimeout(() => immediately.abort(), deployLimits.interruptedStopMs);
  };
  // The parent was killed and can pass on no signal any more.
  const onDisconnect = () => stopping.abort();
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  // Waiting for a signal does not by itself keep a process alive.
  const alive = setInterval(() => undefined, KEEP_ALIVE_MS);
  process.once("disconnect", onDisconnect);

  const started: { name: string; stop: StopStep }[] = [];
  for (const step of options.steps) {
    if (stopping.signal.aborted) break;
    try {
      const start = step.start({ fail, stopping: stopping.signal });
      start.catch(() => undefined);
      const stop = await Promise.race([start, abandoned(stopping.signal)]);
      if (stop !== undefined) started.push({ name: step.name, stop });
    } catch (error) {
      fail(error);
    }
  }
  isStarting = false;
  await aborted(stopping.signal);

  for (const { name, stop } of started.toReversed()) {
    const problem = await stopOne(name, stop, immediately.signal, options.stepStopMs ?? deployLimits.stepStopMs);
    if (problem === undefined) continue;
    failures.push(problem);
    reportError(problem, options.log);
  }
  clearInterval(alive);
  if (failures.length === 0) options.print("Stopped.");
  for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
  process.off("disconnect", onDisconnect);
  const [failure] = failures;
  if (failure === undefined) return 0;
  return failure instanceof UserError ? failure.exitCode : 1;
}

/** Returns the error, or undefined when the step has stopped in time. */
async function stopOne(name: string, stop: StopStep, immediately: AbortSignal, timeoutMs: number): Promise<unknown> {
  const timer = new AbortController();
  const timeOut = delay(timeoutMs, "late" as const, { signal: timer.signal });
  timeOut.catch(() => undefined);
  try {
    const outcome = await Promise.race([stop(immediately), timeOut]);
    if (outcome !== "late") return undefined;
    return new UserError(`${name} did not stop within ${timeoutMs / 1000} s.`, { code: "stop_timeout" });
  } catch (error) {
    return error;
  } finally {
    timer.abort();
  }
}

/** Resolves a while after the signal: a start that ends at the signal has ended by then. */
async function abandoned(signal: AbortSignal): Promise<undefined> {
  await aborted(signal);
  await delay(deployLimits.startAbandonedMs);
  return undefined;
}

function aborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/**
 * Joins steps that do not need one another into one. They start at the same time, and stop one after the other in reverse
 * order. When one does not start, the others are stopped, and the joint step fails with its error.
 */
export function together(name: string, steps: readonly Step[]): Step {
  return {
    name,
    start: async (control) => {
      const results = await Promise.allSettled(steps.map((step) => step.start(control)));
      const stops = results.flatMap((result): StopStep[] =>
        result.status === "fulfilled" && result.value !== undefined ? [result.value] : [],
      );
      const stopAll: StopStep = async (immediately) => {
        for (const stop of stops.toReversed()) await stop(immediately);
      };
      const failed = results.find((result) => result.status === "rejected");
      if (failed === undefined) return stopAll;
      await stopAll(new AbortController().signal);
      throw failed.reason;
    },
  };
}

/** Prints one sentence about an error: its message, or the words for its code. What a programmer needs goes to the log file. */
export function reportError(error: unknown, log: LogSpec | undefined): void {
  const text = `${new Date().toISOString()} ${inspect(error, { depth: 5 })}\n`;
  const isWritten = log !== undefined && appendToLog(log, text);
  const details = isWritten ? `details are in ${log.logFile}` : "there is no log, because none can be written";
  const sentence =
    error instanceof UserError
      ? error.message
      : (cannotGoOn("The start", error) ?? `Something unexpected went wrong; ${details} (${errorCode(error)}).`);
  process.stderr.write(`${sentence}\n`);
}
