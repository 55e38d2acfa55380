/** Whether a companion would take a collection now: it must be heard, and it must ask for its assignments. */
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import type { StationDevice, StationState } from "../../../machines/station/state.ts";
import type { READINESS } from "../../contract/cashier.ts";
import { LIMITS } from "../../limits.ts";

export interface CompanionReadiness {
  readonly readiness: (typeof READINESS)[number];
  /** From this moment on the same facts say something else; infinity when only new facts change it. */
  readonly validUntilMs: number;
}

/**
 * A companion need not poll during a collection (contract, "GET assignment"): while one that it has fetched is under way
 * it is ready, and after its end it has as long to come back as it has between two polls.
 */
export function readinessOf(
  state: Pick<StationState, "intent" | "ended">,
  device: Pick<StationDevice, "deviceId" | "liveness">,
  polledAtMs: number | null,
  nowMs: number,
): CompanionReadiness {
  if (device.liveness.state === "offline") return { readiness: "offline", validUntilMs: Number.POSITIVE_INFINITY };
  const isCollecting = state.intent?.deviceId === device.deviceId && state.intent.status !== "created";
  if (isCollecting) return { readiness: "ready", validUntilMs: Number.POSITIVE_INFINITY };
  // Who has never polled is not ready, whatever has been collected without it.
  if (polledAtMs === null) return { readiness: "not_polling", validUntilMs: Number.POSITIVE_INFINITY };
  const busyUntilMs = Math.max(0, ...state.ended.filter(wasFetchedBy(device)).map(({ endedAtMs }) => endedAtMs ?? 0));
  const dueMs = Math.max(polledAtMs, busyUntilMs) + LIMITS.pollSilenceMs;
  return dueMs > nowMs
    ? { readiness: "ready", validUntilMs: dueMs }
    : { readiness: "not_polling", validUntilMs: Number.POSITIVE_INFINITY };
}

const wasFetchedBy =
  ({ deviceId }: Pick<StationDevice, "deviceId">) =>
  (intent: PaymentIntent): boolean =>
    intent.deviceId === deviceId && intent.presentedAtMs !== null;
