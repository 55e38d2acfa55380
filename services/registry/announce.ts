/** What the registry tells the bus: the outbox rows of a change, and the wait for their delivery. */
import type { Actor } from "../../machines/actor.ts";
import type { Capability, DeviceDescription, StationDescription } from "../../machines/station/state.ts";
import { flushKeys } from "../bus/flush-outbox.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import { type SwitchEntry, switchKeyOf } from "../bus/messages/kill-switches.ts";
import { credentialKey, type OutboxKey, type OutboxRow, sessionKey, stationKey, switchKey } from "../db/outbox.ts";
import type { RegistryDeps } from "./deps.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import type { DeviceRow } from "./sql/devices.ts";
import type { KillSwitchRow } from "./sql/kill-switches.ts";
import type { StationRow } from "./sql/stations.ts";

/** Tells the station's actor what the station is now. */
export function stationPut(station: StationRow, actor: Actor): OutboxRow {
  return {
    key: stationKey(station.station_id),
    kind: "station_command",
    stationId: station.station_id,
    actor,
    command: {
      type: "station_put",
      stationId: station.station_id,
      station: stationDescription(station),
    },
  };
}

/** Tells the station's actor what one of its devices is now. */
export function devicePut(device: DeviceRow, actor: Actor): OutboxRow {
  return {
    key: stationKey(device.station_id),
    kind: "station_command",
    stationId: device.station_id,
    actor,
    command: {
      type: "device_put",
      device: deviceDescription(device),
    },
  };
}

/** A station as its actor knows it. */
export function stationDescription(row: StationRow): StationDescription {
  return {
    organizationId: row.organization_id,
    filialId: row.filial_id,
    name: row.name,
    currency: row.currency,
    status: row.status,
    revision: row.revision,
  };
}

/** A device as its station's actor knows it. */
export function deviceDescription(row: DeviceRow): DeviceDescription & { readonly capabilities: Capability[] } {
  return {
    deviceId: row.device_id,
    name: row.name,
    kind: row.kind,
    capabilities: row.capabilities,
    status: row.status,
    handoffTarget: row.handoff_target,
    revision: row.revision,
  };
}

/** Takes revoked credentials out of the gateways. */
export function credentialDeletes(deviceId: number, hashes: readonly string[]): OutboxRow[] {
  return hashes.map((hash) => ({ key: credentialKey(deviceId), kind: "credential_delete", hash }));
}

/** Takes ended sessions out of the gateways. */
export function sessionDeletes(userId: number, ended: readonly { readonly hash: string }[]): OutboxRow[] {
  return ended.map(({ hash }) => ({ key: sessionKey(userId), kind: "session_delete", hash }));
}

/** Notifies a station of the end of sessions that may drive it. */
export function sessionsEnded(stationId: number, sessionIds: readonly number[], actor: Actor): OutboxRow {
  return {
    key: stationKey(stationId),
    kind: "station_command",
    stationId,
    actor,
    command: { type: "sessions_ended", sessionIds },
  };
}

/** Throws a kill switch, or takes it back, at every gateway and host. */
export function switchSet(row: KillSwitchRow): OutboxRow {
  return { key: switchKey(row.switch_id), kind: "switch_set", entry: switchEntry(row) };
}

/** A kill switch as its bucket knows it. */
export function switchEntry(row: KillSwitchRow): SwitchEntry {
  const key = switchKeyOf({ kind: row.subject_kind, id: row.subject_id });
  return { key, isOn: row.is_on, revision: row.revision };
}

/** Has the relay deliver these keys now, and says how far the replicas must come to show it (`services/bus/flush-outbox.ts`). */
export async function flush(
  { nc, log }: Pick<RegistryDeps, "nc" | "log">,
  ...keys: readonly OutboxKey[]
): Promise<Barrier> {
  return await flushKeys({ nc, log, timeoutMs: REGISTRY_LIMITS.flushTimeoutMs }, keys);
}
