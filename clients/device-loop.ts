/**
 * The life of an attached device: heartbeat on a timer, one turn of its own work after another, and a calm answer to
 * every failure. Requests go out one at a time, so the pace of the transport is the device's whole request budget.
 */
import { needsCode } from "./attach.ts";
import type { CheckIn } from "./check-in.ts";
import { failureReason, isRetryable, ServiceRefusal } from "./device-error.ts";
import { clientLimits } from "./limits.ts";
import { createBackoff, pause } from "./pace.ts";
import { waitMs } from "./repeat.ts";

export interface DeviceLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface DeviceLoopDeps {
  readonly checkIn: CheckIn;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
  /** True when a heartbeat was accepted just before. */
  readonly isLive: boolean;
  /** Called once, after the first accepted check-in: from then on the device counts as live, unless its name asks for silence. */
  readonly onReady: () => void;
  /** One turn of the device's own work; returns how long to wait until the next. */
  readonly turn: () => Promise<number>;
}

/** Runs until the signal is aborted. Throws `DeviceStopped` when the credential is revoked. */
export async function runDeviceLoop(deps: DeviceLoopDeps): Promise<void> {
  const { checkIn, log, signal } = deps;
  const backoff = createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.backoffMaxMs });
  let heartbeatAtMs = deps.isLive ? performance.now() + clientLimits.heartbeatEveryMs : 0;
  let isReady = deps.isLive;
  if (isReady) deps.onReady();
  let trouble = "";
  while (!signal.aborted) {
    try {
      if (performance.now() >= heartbeatAtMs) {
        await checkIn.once(signal);
        heartbeatAtMs = performance.now() + clientLimits.heartbeatEveryMs;
        if (!isReady) deps.onReady();
        isReady = true;
      }
      const waitForMs = await deps.turn();
      backoff.reset();
      if (trouble !== "") log.info({}, "the service accepts requests again");
      trouble = "";
      await pause(Math.min(waitForMs, Math.max(0, heartbeatAtMs - performance.now())), signal);
    } catch (error) {
      if (signal.aborted) return;
      const failure = describeFailure(error);
      if (failure.reason !== trouble) log.warn({ reason: failure.reason }, failure.sentence);
      trouble = failure.reason;
      await pause(failure.isBlocked ? clientLimits.blockedPollMs : waitMs(error, backoff.nextMs()), signal);
    }
  }
}

/** What a failure means for the loop; one that it cannot live with is thrown on. */
function describeFailure(error: unknown): { reason: string; sentence: string; isBlocked: boolean } {
  if (error instanceof ServiceRefusal && error.httpStatus === 401) throw needsCode(true);
  // Standing can come back, so a blocked device keeps its heartbeat and looks again (design §4, "blocked device").
  if (error instanceof ServiceRefusal && error.httpStatus === 403)
    return { reason: error.code, sentence: `blocked: ${error.message}`, isBlocked: true };
  if (!isRetryable(error)) throw error;
  const reason = failureReason(error);
  return { reason, sentence: error instanceof Error ? error.message : reason, isBlocked: false };
}
