/** Stations as their owner sets them up. Each change goes to the station's actor by the outbox. */
import type { Actor } from "../../machines/actor.ts";
import { take } from "../../machines/pure-transition.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { type StationStatus, stationStandingMachine } from "../../machines/standing.ts";
import type { StationDescription } from "../../machines/station/state.ts";
import type { announceStations as AnnounceStations } from "../bus/messages/announce.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as stations from "../bus/messages/stations.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { createOnce } from "../db/creations.ts";
import { insertOutbox, type OutboxRow, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { flush, type RegistryHandler } from "./deps.ts";
import { deviceDescription } from "./devices.ts";
import { ownerEvent } from "./events.ts";
import { announceDevices } from "./sql/devices.ts";
import { revokeEnrollmentCodesOfStation } from "./sql/enrollment-codes.ts";
import { recordEvent } from "./sql/events.ts";
import { getFilial } from "./sql/filials.ts";
import * as sql from "./sql/stations.ts";

/** A station as its actor knows it. */
const stationDescription = (row: sql.StationRow): StationDescription => ({
  organizationId: row.organization_id,
  filialId: row.filial_id,
  name: row.name,
  currency: row.currency,
  status: row.status,
  revision: row.revision,
});

export const stationMessage = (row: sql.StationRow): stations.Station => ({
  ...stationDescription(row),
  stationId: row.station_id,
  sandbox: row.sandbox,
  createdAtMs: row.created_at.getTime(),
});

/** Sends the station's actor the current state of the station. */
export function stationPut(row: sql.StationRow, actor: Actor): OutboxRow {
  const stationId = row.station_id;
  const command = { type: "station_put", stationId, station: stationDescription(row) } as const;
  return { key: stationKey(stationId), kind: "station_command", stationId, actor, command };
}

export const listStations: RegistryHandler<typeof stations.listStations> = async (deps, request) => {
  const { caller, filialId, status, sinceId, limit } = request;
  const { organizationId } = requirePermission(
    caller,
    "organization.manage",
    "payments.collect",
    "reconciliation.manage",
  );
  const rows = await sql.listStations(deps.sql, { organizationId, filialId, status, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(stationMessage), limit);
  return { stations: page, hasMore };
};

export const getStation: RegistryHandler<typeof stations.getStation> = async (deps, { caller, stationId }) => {
  requirePermission(caller, "organization.manage", "payments.collect");
  return { station: stationMessage(existing(await sql.getStation(deps.sql, caller.organizationId, stationId))) };
};

export const createStation: RegistryHandler<typeof stations.createStation> = async (deps, request) => {
  const { caller, filialId, name, currency, creation } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const create = async (tx: Transaction): Promise<sql.StationRow> => {
    existing(await getFilial(tx, organizationId, filialId), "filial_id");
    const row = await sql.createStation(tx, { organizationId, filialId, name, currency });
    const data = { name, currency, filial_id: filialId };
    await recordEvent(tx, ownerEvent(caller, "station_created", { kind: "station", id: row.station_id }, data));
    await insertOutbox(tx, stationPut(row, { kind: "owner", id: caller.userId }));
    return row;
  };
  const again = (tx: Transaction, id: number) => sql.getStation(tx, organizationId, id);
  const station = await createOnce(deps.sql, creation, { create, again, idOf: (row) => row.station_id });
  return { station: stationMessage(station), barrier: await flush(deps, stationKey(station.station_id)) };
};

/** With the present name it changes nothing and records no event. */
export const renameStation: RegistryHandler<typeof stations.renameStation> = async (deps, request) => {
  const { caller, stationId, name } = request;
  requirePermission(caller, "organization.manage");
  const station = await deps.sql.begin(async (tx) => {
    const before = existing(await sql.lockStation(tx, caller.organizationId, stationId));
    if (before.name === name) return before;
    const row = await sql.renameStation(tx, stationId, name);
    const data = { from: before.name, to: name };
    await recordEvent(tx, ownerEvent(caller, "station_renamed", { kind: "station", id: stationId }, data));
    await insertOutbox(tx, stationPut(row, { kind: "owner", id: caller.userId }));
    return row;
  });
  return { station: stationMessage(station), barrier: await flush(deps, stationKey(stationId)) };
};

const MOVES = {
  SUSPEND: { to: "suspended", done: "suspended" },
  RESUME: { to: "active", done: "resumed" },
  CLOSE: { to: "closed", done: "closed" },
} as const;

/**
 * Suspends, resumes or closes a station. A station that already has the status keeps it. The codes of a closed station
 * are revoked, because no device enrolls there any more.
 */
export const moveStation: RegistryHandler<typeof stations.moveStation> = async (deps, { caller, stationId, move }) => {
  requirePermission(caller, "organization.manage");
  const { to, done } = MOVES[move];
  const station = await deps.sql.begin(async (tx) => {
    const before = existing(await sql.lockStation(tx, caller.organizationId, stationId));
    if (before.status === to) return before;
    const next = take(stationStandingMachine, { value: before.status, context: {} }, { type: move });
    if (next === undefined) {
      throw new RefusedError({ code: "conflict", detail: `A ${before.status} station cannot be ${done}.` });
    }
    const status = next.value as StationStatus;
    const row = await sql.moveStation(tx, stationId, status);
    if (status === "closed") await revokeEnrollmentCodesOfStation(tx, stationId);
    const data = { from: before.status, to: status };
    await recordEvent(tx, ownerEvent(caller, `station_${done}`, { kind: "station", id: stationId }, data));
    await insertOutbox(tx, stationPut(row, { kind: "owner", id: caller.userId }));
    return row;
  });
  return { station: stationMessage(station), barrier: await flush(deps, stationKey(stationId)) };
};

/** A page of all stations with their devices, for a bus that has lost data. The relay calls it. */
export const announceStations: RegistryHandler<typeof AnnounceStations> = async (deps, { sinceId, limit }) => {
  const rows = await sql.announceStations(deps.sql, { sinceId, limit: limit + 1 });
  const ids = rows.map((row) => row.station_id);
  const deviceRows = await announceDevices(deps.sql, ids, STATE_LIMITS.revokedDevices);
  const devices = Map.groupBy(deviceRows, (row) => row.station_id);
  const found = rows.map((row) => ({
    stationId: row.station_id,
    station: stationDescription(row),
    devices: (devices.get(row.station_id) ?? []).map(deviceDescription),
  }));
  const { page, hasMore } = firstPage(found, limit);
  return { stations: page, hasMore };
};
