/** The device snapshot of enroll, heartbeat and `me` (contract, "Device snapshot"), without `server_time`. */
import { blockedReason, type KillSwitches } from "../standing.ts";
import { findDevice, type StationState } from "../station/state.ts";

export interface DeviceSnapshotView {
  readonly device_id: number;
  readonly name: string;
  readonly kind: string;
  readonly capabilities: readonly string[];
  readonly status: string;
  readonly station_name: string;
  readonly station_status: string;
  readonly handoff_target: string;
  readonly blocked_reason: string;
}

/** Undefined when the station does not have the device. Then the registry is about to remove the credential too. */
export function deviceSnapshotView(
  state: StationState,
  deviceId: number,
  switches: KillSwitches,
): DeviceSnapshotView | undefined {
  const device = findDevice(state, deviceId);
  if (device === undefined) return undefined;
  const { organizationId, stationId, status: stationStatus } = state;
  return {
    device_id: device.deviceId,
    name: device.name,
    kind: device.kind,
    capabilities: device.capabilities,
    status: device.status,
    station_name: state.name,
    station_status: stationStatus,
    handoff_target: device.handoffTarget,
    blocked_reason: blockedReason({ organizationId, stationId, stationStatus, device }, switches),
  };
}
