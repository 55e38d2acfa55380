/** The device snapshot of enroll, heartbeat and `me` (contract, "Device snapshot"), without `server_time`. */
import { blockedReason, type KillSwitches } from "../standing.ts";
import { type DeviceDescription, findDevice, type StationDescription, type StationState } from "../station/state.ts";

interface DeviceSnapshotView {
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

/** A device and its station, as the station's state or the registry has them. */
interface Snapshot {
  readonly organizationId: number;
  readonly station: Pick<StationDescription, "name" | "status"> & { readonly stationId: number };
  readonly device: Omit<DeviceDescription, "revision">;
}

export function deviceSnapshot(
  { organizationId, station, device }: Snapshot,
  switches: KillSwitches,
): DeviceSnapshotView {
  const { stationId, status: stationStatus } = station;
  return {
    device_id: device.deviceId,
    name: device.name,
    kind: device.kind,
    capabilities: device.capabilities,
    status: device.status,
    station_name: station.name,
    station_status: stationStatus,
    handoff_target: device.handoffTarget,
    blocked_reason: blockedReason({ organizationId, stationId, stationStatus, device }, switches),
  };
}

/** Undefined when the station does not have the device. Then the registry is about to remove the credential too. */
export function deviceSnapshotView(
  state: StationState,
  deviceId: number,
  switches: KillSwitches,
): DeviceSnapshotView | undefined {
  const device = findDevice(state, deviceId);
  const { organizationId } = state;
  return device === undefined ? undefined : deviceSnapshot({ organizationId, station: state, device }, switches);
}
