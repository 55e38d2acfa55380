/** The steps for what the registry and the settlement service publish to a station. All are idempotent by content. */
import { STATE_LIMITS } from "../settings.ts";
import type { StationEvent } from "./event.ts";
import { endOvertaken } from "./intent-move.ts";
import { restoreCollections } from "./lost-collections.ts";
import { ACCEPTED, type Command, type Outcome, refuse } from "./outcome.ts";
import { showOrder, takeOrderOff } from "./shown-orders.ts";
import {
  type DeviceDescription,
  findDevice,
  type KnownOrder,
  type OrderSnapshot,
  orderObstacle,
  type StationDescription,
  type StationDevice,
  type StationState,
} from "./state.ts";
import { dropUnclear } from "./unclear-collections.ts";

/** Applies the description of a station and, if its log has lost them, its collections that may have moved money. */
export function putStation(state: StationState | null, command: Command<"station_put">, atMs: number): Outcome {
  const put = describe(state, command);
  if (command.lost === undefined) return { ...put, reply: ACCEPTED };
  const restored = restoreCollections(put.state, command.lost, atMs);
  return { state: restored.state, events: [...put.events, ...restored.events], reply: ACCEPTED };
}

function describe(
  state: StationState | null,
  command: Command<"station_put">,
): { readonly state: StationState; readonly events: readonly StationEvent[] } {
  const { stationId } = command;
  const station = describeStation(command.station);
  if (state !== null && station.revision <= state.revision) return { state, events: [] };
  const events: StationEvent[] = [{ type: "station_changed", status: station.status, revision: station.revision }];
  const next: StationState =
    state === null
      ? {
          ...station,
          stationId,
          devices: [],
          revokedDevices: [],
          order: null,
          waitingOrders: [],
          knownOrders: [],
          provider: { configId: null, revision: 0 },
          unclearCollections: [],
          unclearForgottenThrough: 0,
          unreportedEnds: [],
          lateEvidence: [],
          lease: null,
          lostLease: null,
          endedSessions: [],
          intent: null,
          ended: [],
          olderReasons: [],
          nextIntentNumber: 1,
          replies: [],
        }
      : { ...state, ...station };
  return { state: next, events };
}

/** Applies a device's description. A revoked device leaves the station for ever. Its intents and the audit log keep its id. */
export function putDevice(state: StationState, command: Command<"device_put">, atMs: number): Outcome {
  const device = describeDevice(command.device);
  const { deviceId, status, revision } = device;
  const known = findDevice(state, deviceId);
  if (known !== undefined && revision <= known.revision) return { reply: ACCEPTED };
  // A description from before the revocation may arrive later, and must not add the device again.
  if (state.revokedDevices.includes(deviceId)) return { reply: ACCEPTED };
  const others = state.devices.filter((other) => other.deviceId !== deviceId);
  const events: StationEvent[] = [{ type: "device_changed", deviceId, status, revision }];
  if (status === "revoked") {
    const revokedDevices = [...state.revokedDevices, deviceId].slice(-STATE_LIMITS.revokedDevices);
    return { state: { ...state, devices: others, revokedDevices }, events, reply: ACCEPTED };
  }
  if (others.length >= STATE_LIMITS.devices) return refuse("device_limit_reached");
  // A device that must enroll again may be other hardware, so its old liveness and older heartbeats do not count.
  const isReset = known !== undefined && known.status !== "pending" && status === "pending";
  const absent: StationDevice["liveness"] = { state: "offline", lastSeenAtMs: null, sinceMs: isReset ? atMs : null };
  const liveness = isReset ? absent : (known?.liveness ?? absent);
  const devices = [...others, { ...device, liveness }].toSorted((a, b) => a.deviceId - b.deviceId);
  return { state: { ...state, devices }, events, reply: ACCEPTED };
}

/** Sets the provider config for dynamic QR. An intent that has begun keeps its config. */
export function putProvider(state: StationState, command: Command<"provider_put">): Outcome {
  const { configId, revision } = command.provider;
  if (revision <= state.provider.revision) return { reply: ACCEPTED };
  return {
    state: { ...state, provider: { configId, revision } },
    events: [{ type: "provider_changed", configId, revision }],
    reply: ACCEPTED,
  };
}

/**
 * Applies the description of an order. The display shows an open order. When the order is paid or voided, the display shows the
 * newest other open order. Deliveries may be repeated or arrive out of order, so the station remembers the newest revision of
 * each recent order and ignores older ones.
 */
export function putOrder(state: StationState, command: Command<"order_put">, atMs: number): Outcome {
  const order = describeOrder(command.order);
  const { orderId, revision, status, amountMinor, currency } = order;
  const current = state.order === null ? state.waitingOrders : [...state.waitingOrders, state.order];
  const known = [...state.knownOrders, ...current].find((other) => other.orderId === orderId);
  if (known !== undefined && known.status !== "open") return { reply: ACCEPTED };
  const remembered = rememberOrder(state, order);
  if (status !== "open") {
    // The station knows the payments of its collections from the seam's answer, so a paid order here was paid in another way.
    const reason = status === "paid" ? "order_already_paid" : "order_voided";
    const other = endOvertaken(remembered, { orderId, reason }, atMs);
    const events: StationEvent[] = [{ type: "order_cleared", orderId, status }, ...other.events];
    return { state: takeOrderOff(dropUnclear(other.state, orderId), orderId), events, reply: ACCEPTED };
  }
  if (known !== undefined && revision <= known.revision) return { reply: ACCEPTED };
  const shown = showOrder(remembered, { ...order, shownAtMs: atMs });
  const reason = shown.intent === null ? undefined : orderObstacle(shown, shown.intent);
  const changed = reason === undefined ? { state: shown, events: [] } : endOvertaken(shown, { orderId, reason }, atMs);
  return {
    state: changed.state,
    events: [{ type: "order_shown", orderId, amountMinor, currency }, ...changed.events],
    reply: ACCEPTED,
  };
}

/**
 * The station with the newest description of this order. At the bound it forgets the oldest order, but no paid or voided one
 * while the state has a collection of it: late evidence about that collection must not make the order unclear.
 */
export function rememberOrder(
  state: StationState,
  order: Pick<OrderSnapshot, "orderId" | "revision" | "status">,
): StationState {
  const { orderId, revision, status } = order;
  const others = state.knownOrders.filter((other) => other.orderId !== orderId);
  const all = [...others, { orderId, revision, status }];
  const collected = new Set([state.intent, ...state.ended].map((intent) => intent?.orderId));
  const firstNew = all.length - STATE_LIMITS.knownOrders;
  const isNeeded = (known: KnownOrder): boolean => known.status !== "open" && collected.has(known.orderId);
  return { ...state, knownOrders: all.filter((known, index) => index >= firstNew || isNeeded(known)) };
}

// These functions copy only the known fields of JSON descriptions, so that the state stays bounded.

function describeStation(station: StationDescription): StationDescription {
  const { organizationId, filialId, name, currency, status, revision } = station;
  return { organizationId, filialId, name, currency, status, revision };
}

function describeDevice(device: DeviceDescription): DeviceDescription {
  const { deviceId, name, kind, capabilities, status, handoffTarget, revision } = device;
  return { deviceId, name, kind, capabilities, status, handoffTarget, revision };
}

function describeOrder(order: OrderSnapshot): OrderSnapshot {
  const { orderId, orderDisplayNumber, amountMinor, currency, status, revision } = order;
  return { orderId, orderDisplayNumber, amountMinor, currency, status, revision };
}
