/** A device for the owner: what the registry says of it, and what its station knows of its presence. */
import type { z } from "zod";
import { blockedReason, type KillSwitches } from "../../../machines/standing.ts";
import { findDevice, type StationState } from "../../../machines/station/state.ts";
import type { Device } from "../../../services/bus/messages/registry.ts";
import type { deviceSchema } from "../../contract/backoffice.ts";
import { toTimestamp } from "../../contract/shared.ts";

export type DeviceWire = z.infer<typeof deviceSchema>;

export function deviceWire(
  device: Device,
  facts: { readonly state: StationState | undefined; readonly switches: KillSwitches },
): DeviceWire {
  const { deviceId, stationId } = device;
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
    liveness: livenessWire(deviceId, facts.state),
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

function livenessWire(deviceId: number, state: StationState | undefined): DeviceWire["liveness"] {
  const known = state === undefined ? undefined : findDevice(state, deviceId);
  if (known === undefined) return null;
  const { liveness } = known;
  return {
    online: liveness.state === "online",
    last_seen_at: optionalTimestamp(liveness.lastSeenAtMs),
    since: optionalTimestamp(liveness.sinceMs),
  };
}

function optionalTimestamp(ms: number | null): string | null {
  return ms === null ? null : toTimestamp(ms);
}
