/**
 * Keeps one part of the system running. When the part ends by itself, it is started again after a pause, and one line
 * reports this to the operator. A part that keeps ending, or that reports why it cannot continue, is abandoned.
 */
import { setTimeout as delay } from "node:timers/promises";
import { errorCode, UserError } from "../services/runtime/user-error.ts";
import { type Child, describeExit, type Exit } from "./child.ts";
import { type DiskRoom, isAboutSpace } from "./disk-room.ts";
import { deployLimits } from "./limits.ts";
import type { StepControl, StopStep } from "./supervisor.ts";

/** How a part ended. */
export interface Ending {
  exit: Exit;
  /** The reason that the part has reported, if any. */
  reason?: UserError | undefined;
  /** Whether it has reported that the disk is full. */
  wasForSpace?: boolean;
}

/** A part that is up. */
export interface Running {
  child: Child;
  /** Resolves when it has ended and all that it has printed is read. Never rejects. */
  ended: Promise<Ending>;
}

interface KeepRunningOptions {
  /** The name of the part in messages, e.g. `gateway`. */
  name: string;
  logFile: string;
  control: StepControl;
  /** Prints one line for a person. */
  print: (line: string) => void;
  /** Starts the part, at first and after each end; resolves when it is up. Leaves no process when `stopping` is aborted. */
  launch: (stopping: AbortSignal) => Promise<Running>;
  /** The disk that the part needs. */
  room: DiskRoom;
  /** Decides about restarts. Only tests set it. */
  policy?: RestartPolicy;
}

/** The codes of errors after which another start would fail, too: a person has to act first. */
const PERMANENT_CODES: ReadonlySet<string> = new Set([
  "invalid_setting",
  "unknown_service",
  "schema_newer",
  "database_older",
  "nats_too_old",
  "installations_differ",
  "nats_server_too_old",
  "nats_server_unusable",
  "postgres_other_version",
  "postgres_unsupported_platform",
  "postgres_unusable",
  "postgres_needs_account",
  "postgres_password_lost",
  "device_stopped",
]);

const isPermanent = (error: unknown): error is UserError =>
  error instanceof UserError && PERMANENT_CODES.has(error.code);

/** Starts the part; rejects when that does not succeed the first time. Returns how to stop it for good. */
export async function keepRunning(options: KeepRunningOptions): Promise<StopStep> {
  const { name, logFile, control, print, launch, room } = options;
  const stopped = new AbortController();
  const stopping = AbortSignal.any([control.stopping, stopped.signal]);
  let running = await launch(stopping);
  const policy = options.policy ?? new RestartPolicy(performance.now());

  /** Starts it again until that succeeds; undefined when it is abandoned or no longer needed. */
  const startAgain = async (ending: Ending): Promise<Running | undefined> => {
    const endedAtMs = performance.now();
    let what = describeExit(ending.exit);
    let reason: unknown = ending.reason;
    let isForSpace = ending.wasForSpace === true;
    for (;;) {
      if (isPermanent(reason)) {
        control.fail(reason);
        return undefined;
      }
      const because = reason instanceof UserError ? ` (${reason.message.replace(/\.$/, "")})` : "";
      if (!room.hasRoom()) {
        print(`${name} ${what}${because}. ${room.shortage()} to start it again; it is started when they are free.`);
        await room.whenRoom(stopping);
        if (stopping.aborted) return undefined;
        isForSpace = true;
      }
      // A lack of space does not count against the part: it may last for hours, and ends without a change of the part.
      const verdict =
        isForSpace || room.wasShort() ? policy.endedForSpace(performance.now()) : policy.ended(performance.now());
      // The part's sentence may have named the log already.
      const where = because.includes(logFile) ? "" : ` Its log is ${logFile}.`;
      if ("abandonedBecause" in verdict) {
        const sentence = `${name} ${verdict.abandonedBecause} and is abandoned${because}.${where}`;
        control.fail(new UserError(sentence, { code: "child_abandoned", cause: reason }));
        return undefined;
      }
      print(`${name} ${what}${because}; it is started again in ${verdict.afterMs / 1_000} s.${where}`);
      await delay(verdict.afterMs, undefined, { signal: stopping }).catch(() => undefined);
      if (stopping.aborted) return undefined;
      try {
        const again = await launch(stopping);
        policy.up(performance.now());
        print(`${name} is up again after ${((performance.now() - endedAtMs) / 1_000).toFixed(1)} s.`);
        return again;
      } catch (error) {
        if (stopping.aborted) return undefined;
        what = "could not be started again";
        reason = error;
        isForSpace = isAboutSpace(`${errorCode(error)} ${error instanceof Error ? error.message : ""}`);
      }
    }
  };

  const watching = (async () => {
    for (;;) {
      const ending = await running.ended;
      if (stopping.aborted) return;
      const again = await startAgain(ending);
      if (again === undefined) return;
      running = again;
      // The part came up during the stop, which has ended only the process before it.
      if (stopped.signal.aborted) await running.child.stop();
    }
  })();
  return async (immediately) => {
    stopped.abort();
    await running.child.stop(immediately);
    await watching;
  };
}

type RestartLimits = Readonly<
  Record<"restartFirstMs" | "restartMaxMs" | "restartQuietMs" | "restartMaxEnds" | "restartWindowMs", number>
>;

/** What to do about a part that ended: start it again after a pause, or abandon it, and why in words. */
type Verdict = { afterMs: number } | { abandonedBecause: string };

/**
 * Decides when a part that ended by itself is started again. It is called at every start and every end; a start that did
 * not succeed is an end. All times are from one monotonic clock.
 */
export class RestartPolicy {
  readonly #limits: RestartLimits;
  #endsAtMs: number[] = [];
  #pauseMs: number;
  #upAtMs: number | undefined;
  #lastUpMs: number;

  constructor(nowMs: number, limits: RestartLimits = deployLimits) {
    this.#limits = limits;
    this.#pauseMs = limits.restartFirstMs;
    this.#upAtMs = nowMs;
    this.#lastUpMs = nowMs;
  }

  up(nowMs: number): void {
    this.#upAtMs = nowMs;
    this.#lastUpMs = nowMs;
  }

  /** The part ended because the disk was full. This end does not count, but the pauses grow as after any end. */
  endedForSpace(nowMs: number): { afterMs: number } {
    this.#wasUpUntil(nowMs);
    this.#lastUpMs = nowMs;
    return this.#pause();
  }

  ended(nowMs: number): Verdict {
    const { restartMaxEnds, restartWindowMs } = this.#limits;
    this.#wasUpUntil(nowMs);
    this.#endsAtMs = [...this.#endsAtMs.filter((endMs) => nowMs - endMs < restartWindowMs), nowMs];
    if (this.#endsAtMs.length >= restartMaxEnds) {
      return { abandonedBecause: `ended ${restartMaxEnds} times within ${inWords(restartWindowMs)}` };
    }
    if (nowMs - this.#lastUpMs >= restartWindowMs) {
      return { abandonedBecause: `could not be started again for ${inWords(restartWindowMs)}` };
    }
    return this.#pause();
  }

  #wasUpUntil(nowMs: number): void {
    if (this.#upAtMs === undefined) return;
    if (nowMs - this.#upAtMs >= this.#limits.restartQuietMs) this.#pauseMs = this.#limits.restartFirstMs;
    this.#upAtMs = undefined;
    this.#lastUpMs = nowMs;
  }

  #pause(): { afterMs: number } {
    const afterMs = this.#pauseMs;
    this.#pauseMs = Math.min(this.#limits.restartMaxMs, this.#pauseMs * 2);
    return { afterMs };
  }
}

/** `5 minutes`, or seconds when it is less than two minutes. */
function inWords(ms: number): string {
  return ms < 120_000 ? `${ms / 1_000} s` : `${ms / 60_000} minutes`;
}
