/** What the registry tells the bus: the outbox rows of a change, and the wait for their delivery. */
import type { Actor } from "../../machines/actor.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import { flushOutbox } from "../bus/messages/relay.ts";
import { call } from "../bus/operation.ts";
import { RefusedError, UnavailableError } from "../bus/refusals.ts";
import { credentialKey, type OutboxKey, type OutboxRow, sessionKey, stationKey } from "../db/outbox.ts";
import type { RegistryDeps } from "./deps.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import type { DeviceRow } from "./sql/devices.ts";
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
      station: {
        organizationId: station.organization_id,
        filialId: station.filial_id,
        name: station.name,
        currency: station.currency,
        status: station.status,
        revision: station.revision,
      },
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
      device: {
        deviceId: device.device_id,
        name: device.name,
        kind: device.kind,
        capabilities: device.capabilities,
        status: device.status,
        handoffTarget: device.handoff_target,
        revision: device.revision,
      },
    },
  };
}

/** Takes revoked credentials out of the gateways. */
export function credentialDeletes(deviceId: number, hashes: readonly string[]): OutboxRow[] {
  return hashes.map((hash) => ({ key: credentialKey(deviceId), kind: "credential_delete", hash }));
}

/** Takes ended sessions out of the gateways. */
export function sessionDeletes(userId: number, hashes: readonly string[]): OutboxRow[] {
  return hashes.map((hash) => ({ key: sessionKey(userId), kind: "session_delete", hash }));
}

/**
 * Has the relay deliver these keys now and says how far the replicas must come to show it. When the relay does not
 * answer in time the change stands all the same and will be delivered; the answer then carries no barrier.
 */
export async function flush(deps: Pick<RegistryDeps, "nc" | "log">, ...keys: readonly OutboxKey[]): Promise<Barrier> {
  const barriers = await Promise.all(keys.map((key) => flushKey(deps, key)));
  const merged: Barrier = {};
  for (const barrier of barriers) {
    for (const name of ["stationLogSequence", "credentialsRevision", "sessionsRevision"] as const) {
      const value = barrier[name];
      if (value !== undefined) merged[name] = Math.max(merged[name] ?? 0, value);
    }
  }
  return merged;
}

async function flushKey(deps: Pick<RegistryDeps, "nc" | "log">, key: OutboxKey): Promise<Barrier> {
  try {
    return await call(deps.nc, flushOutbox, { key }, REGISTRY_LIMITS.flushTimeoutMs);
  } catch (error) {
    if (!(error instanceof UnavailableError) && !(error instanceof RefusedError)) throw error;
    deps.log.warn({ key, reason: error.message }, "answered before the relay delivered");
    return {};
  }
}
