/** The steps of the liveness feed. A station commits only the changes between online and offline. */
import { type LivenessEvent, type LivenessState, livenessMachine } from "../liveness.ts";
import { take } from "../pure-transition.ts";
import type { StationEvent } from "./event.ts";
import { ACCEPTED, type Command, type Outcome, refuse } from "./outcome.ts";
import { findDevice, type StationDevice, type StationState } from "./state.ts";

export function markDeviceSeen(state: StationState, command: Command<"device_seen">, atMs: number): Outcome {
  const { deviceId } = command;
  // A device must not count as seen in the future. But a heartbeat that is newer than the last one, or than a reset, stays newer, also while
  // the station's time stands still.
  const { lastSeenAtMs = null, sinceMs = null } = findDevice(state, deviceId)?.liveness ?? {};
  const seenAtMs = Math.min(command.seenAtMs, Math.max(atMs, (lastSeenAtMs ?? sinceMs ?? 0) + 1));
  return moveLiveness(state, deviceId, { type: "SEEN", seenAtMs }, { type: "device_online", deviceId, seenAtMs });
}

export function markDeviceSilent(state: StationState, command: Command<"device_silent">, atMs: number): Outcome {
  const { deviceId, lastSeenAtMs } = command;
  const record: StationEvent = { type: "device_offline", deviceId, lastSeenAtMs };
  return moveLiveness(state, deviceId, { type: "SILENT", lastSeenAtMs, atMs }, record);
}

function moveLiveness(state: StationState, deviceId: number, event: LivenessEvent, record: StationEvent): Outcome {
  const device = findDevice(state, deviceId);
  if (device === undefined) return refuse("device_unknown");
  // A device that must enroll again has no credential, so its heartbeat is from before the reset.
  if (device.status === "pending") return { reply: ACCEPTED };
  const { state: value, ...context } = device.liveness;
  const next = take(livenessMachine, { value, context }, event);
  if (next === undefined) return { reply: ACCEPTED };
  const moved: StationDevice = { ...device, liveness: { ...next.context, state: next.value as LivenessState } };
  const devices = state.devices.map((other) => (other === device ? moved : other));
  return { state: { ...state, devices }, events: [record], reply: ACCEPTED };
}
