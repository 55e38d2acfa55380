/** What the registry, the settlement service and the liveness feed tell a station. All are idempotent by content. */
import { type LivenessEvent, type LivenessState, livenessMachine } from "../liveness.ts";
import { take } from "../pure-transition.ts";
import { STATE_LIMITS } from "../settings.ts";
import type { StationEvent } from "./event.ts";
import { ACCEPTED, type Command, type Outcome, refuse } from "./outcome.ts";
import { findDevice, type StationDevice, type StationState } from "./state.ts";

export function putStation(state: StationState | null, command: Command<"station_put">): Outcome {
  const { station, stationId } = command;
  if (state !== null && station.revision <= state.revision) return { reply: ACCEPTED };
  const events: StationEvent[] = [{ type: "station_changed", status: station.status, revision: station.revision }];
  const next: StationState =
    state === null
      ? {
          ...station,
          stationId,
          devices: [],
          order: null,
          lease: null,
          intent: null,
          ended: [],
          nextIntentNumber: 1,
          replies: [],
        }
      : { ...state, ...station };
  return { state: next, events, reply: ACCEPTED };
}

/** A revoked device leaves the station; its intents and the audit trail keep its id. */
export function putDevice(state: StationState, command: Command<"device_put">): Outcome {
  const { device } = command;
  const known = findDevice(state, device.deviceId);
  if (known !== undefined && device.revision <= known.revision) return { reply: ACCEPTED };
  const others = state.devices.filter((other) => other.deviceId !== device.deviceId);
  if (device.status === "revoked" && known === undefined) return { reply: ACCEPTED };
  if (device.status !== "revoked" && others.length >= STATE_LIMITS.devices) return refuse("device_limit_reached");
  // A device that must enroll again is somebody else's hardware until it has been heard.
  const kept = device.status === "pending" ? undefined : known?.liveness;
  const liveness = kept ?? { state: "offline", lastSeenAtMs: null, sinceMs: null };
  const devices =
    device.status === "revoked"
      ? others
      : [...others, { ...device, liveness }].toSorted((a, b) => a.deviceId - b.deviceId);
  const { deviceId, status, revision } = device;
  return {
    state: { ...state, devices },
    events: [{ type: "device_changed", deviceId, status, revision }],
    reply: ACCEPTED,
  };
}

/** An open order becomes the one shown; a paid or voided one leaves the display. */
export function putOrder(state: StationState, command: Command<"order_put">, atMs: number): Outcome {
  const { order } = command;
  if (order.status === "open") {
    if (state.order?.orderId === order.orderId && order.revision <= state.order.revision) return { reply: ACCEPTED };
    // The settlement that paid this order may have been committed before an older description of it arrived.
    const paid = state.ended.some((intent) => intent.orderId === order.orderId && intent.status === "succeeded");
    if (paid) return { reply: ACCEPTED };
    const { orderId, amountMinor, currency } = order;
    return {
      state: { ...state, order: { ...order, shownAtMs: atMs } },
      events: [{ type: "order_shown", orderId, amountMinor, currency }],
      reply: ACCEPTED,
    };
  }
  if (state.order?.orderId !== order.orderId) return { reply: ACCEPTED };
  return {
    state: { ...state, order: null },
    events: [{ type: "order_cleared", orderId: order.orderId, status: order.status }],
    reply: ACCEPTED,
  };
}

export function hearDevice(state: StationState, command: Command<"device_seen">): Outcome {
  const { deviceId, seenAtMs } = command;
  return moveLiveness(state, deviceId, { type: "SEEN", seenAtMs }, { type: "device_online", deviceId, seenAtMs });
}

export function loseDevice(state: StationState, command: Command<"device_silent">, atMs: number): Outcome {
  const { deviceId, lastSeenAtMs } = command;
  return moveLiveness(
    state,
    deviceId,
    { type: "SILENT", lastSeenAtMs, atMs },
    { type: "device_offline", deviceId, lastSeenAtMs },
  );
}

function moveLiveness(state: StationState, deviceId: number, event: LivenessEvent, record: StationEvent): Outcome {
  const device = findDevice(state, deviceId);
  if (device === undefined) return refuse("device_unknown");
  const { state: value, ...context } = device.liveness;
  const next = take(livenessMachine, { value, context }, event);
  if (next === undefined) return { reply: ACCEPTED };
  const moved: StationDevice = { ...device, liveness: { ...next.context, state: next.value as LivenessState } };
  const devices = state.devices.map((other) => (other === device ? moved : other));
  return { state: { ...state, devices }, events: [record], reply: ACCEPTED };
}
