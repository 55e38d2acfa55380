/**
 * Keeps one part of the system running: what ended by itself is started again after a pause, each time with one line for
 * the person who watches. A part that keeps ending, or that reports why it cannot continue, is abandoned.
 */
import { setTimeout as delay } from "node:timers/promises";
import { errorCode, UserError } from "../services/runtime/user-error.ts";
import { type Child, describeExit, type Exit } from "./child.ts";
import { type DiskRoom, isAboutSpace } from "./disk-room.ts";
import { RestartPolicy } from "./restart-policy.ts";
import type { StepControl, StopStep } from "./supervisor.ts";

/** How a part ended. */
export interface Ending {
  exit: Exit;
  /** The part's own sentence about it, when it gave one. */
  reason?: UserError | undefined;
  /** Whether it has said that the disk is full. */
  wasForSpace?: boolean;
}

/** A part that is up. */
export interface Running {
  child: Child;
  /** Resolves when it has ended and all that it said is read. Never rejects. */
  ended: Promise<Ending>;
}

export interface KeepRunningOptions {
  /** For sentences, e.g. `gateway`. */
  name: string;
  logFile: string;
  control: StepControl;
  /** Prints one line for a person. */
  say: (line: string) => void;
  /** Starts it, the first time and again, and resolves when it is up. Leaves nothing behind when `stopping` is aborted meanwhile. */
  launch: (stopping: AbortSignal) => Promise<Running>;
  /** The disk that the part needs. */
  room: DiskRoom;
  /** Decides about restarts; another one than the usual only in tests. */
  policy?: RestartPolicy;
}

/** What a part may say of itself that another start would not change: a person has to do something first. */
const PERMANENT_CODES: ReadonlySet<string> = new Set([
  "invalid_setting",
  "unknown_service",
  "schema_newer",
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
  const { name, logFile, control, say, launch, room } = options;
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
        say(`${name} ${what}${because}. ${room.shortage()} to start it again; it is started when they are free.`);
        await room.whenRoom(stopping);
        if (stopping.aborted) return undefined;
        isForSpace = true;
      }
      // Want of space says nothing against the part: it may last for hours, and ends without it being changed.
      const verdict =
        isForSpace || room.wasShort() ? policy.endedForSpace(performance.now()) : policy.ended(performance.now());
      // Its own sentence may have named the log already.
      const where = because.includes(logFile) ? "" : ` Its log is ${logFile}.`;
      if ("giveUp" in verdict) {
        const sentence = `${name} ${verdict.giveUp} and is given up${because}.${where}`;
        control.fail(new UserError(sentence, { code: "child_given_up", cause: reason }));
        return undefined;
      }
      say(`${name} ${what}${because}; it is started again in ${verdict.afterMs / 1_000} s.${where}`);
      await delay(verdict.afterMs, undefined, { signal: stopping }).catch(() => undefined);
      if (stopping.aborted) return undefined;
      try {
        const again = await launch(stopping);
        policy.up(performance.now());
        say(`${name} is up again after ${((performance.now() - endedAtMs) / 1_000).toFixed(1)} s.`);
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
      // It came up in the very moment of the stop, which has found only its predecessor.
      if (stopped.signal.aborted) await running.child.stop();
    }
  })();
  return async (immediately) => {
    stopped.abort();
    await running.child.stop(immediately);
    await watching;
  };
}
