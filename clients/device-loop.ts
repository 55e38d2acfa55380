/**
 * The life of an attached device: heartbeats at their interval, beside them one turn of its work after another, and a calm
 * answer to every failure. The pace of the transport is the request budget of both.
 */

import { needsCode } from "./attach.ts";
import type { CheckIn } from "./check-in.ts";
import { failureReason, isRetryable, ServiceRefusal } from "./device-error.ts";
import { clientLimits } from "./limits.ts";
import type { DeviceLog } from "./log.ts";
import { createBackoff, pause } from "./pace.ts";
import { waitMs } from "./repeat.ts";

export interface DeviceLoopDeps {
  readonly checkIn: CheckIn;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
  /** True when a heartbeat was accepted just before. */
  readonly isLive: boolean;
  /** Called once, after the first accepted check-in: from then on the device counts as live, unless its name asks for silence. */
  readonly onReady: () => void;
  /** One turn of the device's work; returns how long to wait until the next. */
  readonly turn: () => Promise<number>;
  /** Another interval than that of `clientLimits`; only in tests. */
  readonly heartbeatEveryMs?: number;
}

/** Runs until the signal is aborted. Throws `DeviceStopped` when the credential is revoked. */
export async function runDeviceLoop(deps: DeviceLoopDeps): Promise<void> {
  const ended = new AbortController();
  const signal = AbortSignal.any([deps.signal, ended.signal]);
  const troubles = createTroubles(deps.log);
  const live = Promise.withResolvers<void>();
  const onLive = (): void => {
    deps.onReady();
    live.resolve();
  };
  if (deps.isLive) onLive();
  signal.addEventListener("abort", () => live.resolve(), { once: true });
  const work = live.promise.then(() => repeatTurns(deps, troubles, signal));
  const heartbeats = sendHeartbeats(deps, troubles, signal, onLive);
  // The other one may be in a long pause of its turn, which nothing has to wait for.
  work.catch(() => undefined);
  heartbeats.catch(() => undefined);
  try {
    await Promise.all([heartbeats, work]);
  } finally {
    ended.abort();
  }
}

/** Never more than an interval apart: a device whose other requests fail must not go offline for that. */
async function sendHeartbeats(
  { checkIn, isLive, heartbeatEveryMs = clientLimits.heartbeatEveryMs }: DeviceLoopDeps,
  troubles: Troubles,
  signal: AbortSignal,
  onLive: () => void,
): Promise<void> {
  const backoff = newBackoff();
  let wasAccepted = isLive;
  if (isLive) await pause(heartbeatEveryMs, signal);
  while (!signal.aborted) {
    const quietMs = checkIn.quietMs();
    if (quietMs > 0) {
      await pause(quietMs, signal);
      continue;
    }
    try {
      await checkIn.once(signal);
      backoff.reset();
      troubles.over("heartbeats");
      if (!wasAccepted) onLive();
      wasAccepted = true;
      await pause(heartbeatEveryMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      const failure = troubles.begin("heartbeats", error);
      const againMs = waitMs(error, Math.min(backoff.nextMs(), heartbeatEveryMs));
      await pause(failure.isBlocked ? clientLimits.blockedPollMs : againMs, signal);
    }
  }
}

async function repeatTurns({ turn }: DeviceLoopDeps, troubles: Troubles, signal: AbortSignal): Promise<void> {
  const backoff = newBackoff();
  while (!signal.aborted) {
    try {
      const waitForMs = await turn();
      backoff.reset();
      troubles.over("work");
      await pause(waitForMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      const failure = troubles.begin("work", error);
      await pause(failure.isBlocked ? clientLimits.blockedPollMs : waitMs(error, backoff.nextMs()), signal);
    }
  }
}

const newBackoff = (): ReturnType<typeof createBackoff> =>
  createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.backoffMaxMs });

type Source = "heartbeats" | "work";

interface Troubles {
  /** Logs a failure once for each reason; throws one that the device cannot live with. */
  begin(source: Source, error: unknown): { readonly isBlocked: boolean };
  over(source: Source): void;
}

function createTroubles(log: DeviceLog): Troubles {
  const reasons = new Map<Source, string>();
  return {
    begin(source, error) {
      const failure = describeFailure(error);
      const isKnown = [...reasons.values()].includes(failure.reason);
      reasons.set(source, failure.reason);
      if (!isKnown) log.warn({ reason: failure.reason }, failure.sentence);
      return failure;
    },
    over(source) {
      if (reasons.delete(source) && reasons.size === 0) log.info({}, "the service accepts requests again");
    },
  };
}

/** What a failure means for the loop; one that it cannot live with is thrown on. */
function describeFailure(error: unknown): { reason: string; sentence: string; isBlocked: boolean } {
  if (error instanceof ServiceRefusal && error.httpStatus === 401) throw needsCode(true);
  // Standing can come back, so a blocked device keeps its heartbeat and checks again (design §4, "blocked device").
  if (error instanceof ServiceRefusal && error.httpStatus === 403)
    return { reason: error.code, sentence: `blocked: ${error.message}`, isBlocked: true };
  if (!isRetryable(error)) throw error;
  const reason = failureReason(error);
  return { reason, sentence: error instanceof Error ? error.message : reason, isBlocked: false };
}
