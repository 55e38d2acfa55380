/**
 * What a passive station still has to be woken for, as a header of its last commit. A host that takes over a partition
 * reads headers only: it learns of every deadline, question under way and online device without decoding a state.
 */
import { nextDeadlineMs } from "../../machines/station/deadlines.ts";
import type { StationState } from "../../machines/station/state.ts";

export const WAKE_HEADER = "Station-Wake";

export interface Wake {
  /** When the state changes by itself, or null. */
  readonly dueMs: number | null;
  /**
   * Whether somebody is being asked or told and the answer is not committed: the payment seam, a provider for a QR, or the
   * providers service of its end.
   */
  readonly isAsking: boolean;
  readonly onlineDevices: readonly number[];
}

export function wakeOf(state: StationState): Wake {
  const onlineDevices: number[] = [];
  for (const device of state.devices) if (device.liveness.state === "online") onlineDevices.push(device.deviceId);
  return { dueMs: nextDeadlineMs(state), isAsking: isAsking(state), onlineDevices };
}

function isAsking({ intent, untoldEnds }: StationState): boolean {
  if (untoldEnds.length > 0) return true;
  return intent?.status === "settling" || (intent?.status === "created" && intent.route === "dynamic_qr");
}

/** `<due or 0> <1 when asking> <online devices, comma separated>` */
export function encodeWake(wake: Wake): string {
  return `${wake.dueMs ?? 0} ${wake.isAsking ? 1 : 0} ${wake.onlineDevices.join(",")}`;
}

/** Undefined for a commit without a readable header: its state must be looked at instead. */
export function decodeWake(text: string | undefined): Wake | undefined {
  const match = /^(\d+) ([01])(?: ([\d,]*))?$/.exec(text ?? "");
  if (match === null) return undefined;
  const dueMs = Number(match[1]);
  const devices = match[3] ?? "";
  return {
    dueMs: dueMs === 0 ? null : dueMs,
    isAsking: match[2] === "1",
    onlineDevices: devices === "" ? [] : devices.split(",").map(Number),
  };
}
