/**
 * A process from start to end: it starts named steps in order, stops them in reverse order, and prints one sentence
 * when it cannot go on.
 *
 *   runProcess({ name, log }, async (run) => {
 *     const bus = await run.step("bus", () => connectBus(…), (bus) => bus.close());
 *     …
 *     return { port };            // goes to the parent as { ready: true, port }
 *   });
 */
import { setTimeout as delay } from "node:timers/promises";
import { cannotGoOn } from "./fault.ts";
import { flushLog, type Log } from "./log.ts";
import { errorCode, UserError } from "./user-error.ts";

/** How long all steps together may take to stop before the process ends anyway: longer than any single request. */
const STOP_MS = 10_000;
/**
 * The same limit after SIGINT, because a person waits, and during the start, when the process serves no request yet.
 */
const SHORT_STOP_MS = 1_300;
/** How long the end waits for a step that is just starting. A step that observes `stopping` ends sooner. */
const ABANDONED_STEP_MS = 500;
/** The exit code after an error that a person can act on, unless the error has another one. */
const EXIT_KNOWN = 1;
/** The exit code after an unexpected error. */
const EXIT_UNEXPECTED = 70;

export interface Run {
  /** Ends the process with this error, as an uncaught one does. */
  fail(error: unknown): void;
  /** Aborted when the process has to end, so that a step can end its waits. */
  readonly stopping: AbortSignal;
  /** Starts one step and remembers how to stop it. Rejects when the process has to end. */
  step<T>(name: string, start: () => Promise<T>, stop: (started: T) => Promise<void>): Promise<T>;
}

/** Thrown by `step` when the process ends, so that the start does not continue. */
class EndingError extends Error {}

/**
 * Runs a process until SIGINT, SIGTERM, the parent's end (IPC disconnect) or a fatal error. The parent receives
 * `{ready: true, …}` or `{ready: false, code, message}`. Never rejects; ends the process.
 */
export async function runProcess(
  options: { readonly name: string; readonly log: Log },
  start: (run: Run) => Promise<Record<string, unknown>>,
): Promise<void> {
  const { name, log } = options;
  const started: { name: string; stop: () => Promise<void> }[] = [];
  const stopping = new AbortController();
  let isReady = false;
  let ending: Promise<never> | undefined;
  /**
   * The step that is just starting; it never rejects. The end waits for it for a short time, because a started step
   * must be stopped, too.
   */
  let underWay: Promise<unknown> = Promise.resolve();

  const stopAll = async (): Promise<void> => {
    for (const step of started.toReversed()) {
      const startedAtMs = performance.now();
      await step.stop().catch((error: unknown) => log.error({ err: error, step: step.name }, "a step did not stop"));
      log.debug({ step: step.name, stoppedInMs: Math.round(performance.now() - startedAtMs) }, "step stopped");
    }
  };
  const end = (exitCode: number, reason: string): Promise<never> => {
    // Ctrl-C during an orderly end shortens it.
    if (reason === "SIGINT" || !isReady) forceAfter(SHORT_STOP_MS, exitCode);
    ending ??= (async () => {
      forceAfter(STOP_MS, exitCode);
      const startedAtMs = performance.now();
      stopping.abort();
      await Promise.race([underWay, delay(ABANDONED_STEP_MS)]);
      await stopAll();
      log.info({ name, reason, stoppedInMs: Math.round(performance.now() - startedAtMs) }, "stopped");
      await flushLog();
      return process.exit(exitCode);
    })();
    return ending;
  };
  const fail = (error: unknown): Promise<never> => {
    if (ending !== undefined) return ending;
    const unexpected = `${name} met an unexpected error; its log has the details.`;
    const { message, exitCode } = outcomeOf(error, name, unexpected);
    log.fatal({ err: error, name }, message);
    process.stderr.write(`${message}\n`);
    notifyParent({ ready: false, code: errorCode(error), message });
    return end(exitCode, "a fatal error");
  };

  // A lost reader of the output or a full disk must not end the process.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  process.once("SIGTERM", () => void end(0, "SIGTERM"));
  process.once("SIGINT", () => void end(0, "SIGINT"));
  process.once("disconnect", () => void end(0, "the parent ended"));
  process.on("uncaughtException", (error) => void fail(error));
  process.on("unhandledRejection", (error) => void fail(error));

  const run: Run = {
    stopping: stopping.signal,
    fail: (error) => void fail(error),
    async step(stepName, begin, stop) {
      if (ending !== undefined) throw new EndingError(stepName);
      const startedAtMs = performance.now();
      const beginning = begin().then((value) => {
        started.push({ name: stepName, stop: () => stop(value) });
        return value;
      });
      underWay = beginning.catch(() => undefined);
      const value = await beginning;
      log.debug({ step: stepName, startedInMs: Math.round(performance.now() - startedAtMs) }, "step started");
      return value;
    },
  };
  try {
    const facts = await start(run);
    isReady = true;
    log.info({ name, ...facts }, "ready");
    notifyParent({ ready: true, ...facts });
  } catch (error) {
    if (!(error instanceof EndingError)) await fail(error);
  }
}

/** Ends the process after `limitMs`, also when a step has not stopped. */
function forceAfter(limitMs: number, exitCode: number): void {
  setTimeout(() => process.exit(exitCode === 0 ? 1 : exitCode), limitMs);
}

/** Ends a program with an error from before `runProcess`, for example about settings that cannot be parsed. */
export function exitWith(error: unknown): never {
  const { message, exitCode } = outcomeOf(error, "The program", String(error));
  process.stderr.write(`${message}\n`);
  notifyParent({ ready: false, code: errorCode(error), message });
  process.exit(exitCode);
}

/**
 * The sentence and the exit code of a program that ends with this error. `unexpected` is the sentence for an error with
 * no known cause.
 */
function outcomeOf(error: unknown, name: string, unexpected: string): { message: string; exitCode: number } {
  if (error instanceof UserError) return { message: error.message, exitCode: error.exitCode };
  const known = cannotGoOn(name, error);
  if (known === undefined) return { message: unexpected, exitCode: EXIT_UNEXPECTED };
  return { message: known, exitCode: EXIT_KNOWN };
}

/** The parent may just have ended. Without the callback, the closed channel would cause an uncaught error. */
function notifyParent(message: Record<string, unknown>): void {
  if (process.connected) process.send?.(message, () => undefined);
}
