/** A device for the owner: what the registry says of it, and what its station knows of its presence. */
import type { z } from "zod";
import { blockedReason, type KillSwitches } from "../../../machines/standing.ts";
import { findDevice, type StationState } from "../../../machines/station/state.ts";
import type { Device } from "../../../services/bus/messages/devices.ts";
import type { deviceSchema } from "../../contract/backoffice.ts";
import { optionalTimestamp, toTimestamp } from "../../http/shared-schemas.ts";
import { livenessWire } from "../liveness-wire.ts";

export type DeviceWire = z.infer<typeof deviceSchema>;

export function deviceWire(
  device: Device,
  facts: { readonly state: StationState | undefined; readonly switches: KillSwitches },
): DeviceWire {
  const { deviceId, stationId } = device;
  const known = facts.state === undefined ? undefined : findDevice(facts.state, deviceId);
  return {
    device_id: deviceId,
    station_id: stationId,
    name: device.name,
    kind: device.kind,
    capabilities: device.capabilities,
    status: device.status,
    handoff_target: device.handoffTarget,
    created_at: toTimestamp(device.createdAtMs),
    enrolled_at: optionalTimestamp(device.enrolledAtMs),
    blocked_reason: blockedFor(device, facts.state, facts.switches),
    liveness: known === undefined ? null : livenessWire(known.liveness),
  };
}

function blockedFor(
  device: Device,
  state: StationState | undefined,
  switches: KillSwitches,
): DeviceWire["blocked_reason"] {
  if (state === undefined) return "";
  const { organizationId, stationId, status: stationStatus } = state;
  return blockedReason({ organizationId, stationId, stationStatus, device }, switches);
}
