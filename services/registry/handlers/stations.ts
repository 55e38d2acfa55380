import { currencyExponent } from "../../../machines/currency.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type {
  createStation,
  getStation,
  listStations,
  moveStation,
  renameStation,
} from "../../bus/messages/stations.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { insertOutbox, stationKey } from "../../db/outbox.ts";
import { flush, stationPut } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { requirePermission } from "../permissions.ts";
import { revokeUnspentCodesOfStation } from "../sql/enrollment-codes.ts";
import { filialExists } from "../sql/filials.ts";
import { recordEvent, userActor } from "../sql/registry-events.ts";
import * as stations from "../sql/stations.ts";
import { stationAfter } from "../standing-step.ts";
import { stationOnWire } from "../wire.ts";

export async function handleListStations(
  deps: RegistryDeps,
  { caller, filialId, sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listStations>,
): Promise<ReplyOf<typeof listStations>> {
  requirePermission(caller, "organization.manage", "payments.collect");
  const { organizationId } = caller;
  const rows = await stations.listStations(deps.sql, { organizationId, filialId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(stationOnWire), limit);
  return { stations: page, hasMore };
}

export async function handleGetStation(
  deps: RegistryDeps,
  { caller, stationId }: RequestOf<typeof getStation>,
): Promise<ReplyOf<typeof getStation>> {
  requirePermission(caller, "organization.manage", "payments.collect");
  const station = await stations.findStation(deps.sql, caller.organizationId, stationId);
  if (station === undefined) throw new RefusedError({ code: "not_found" });
  return { station: stationOnWire(station) };
}

export async function handleCreateStation(
  deps: RegistryDeps,
  { caller, filialId, name, currency }: RequestOf<typeof createStation>,
): Promise<ReplyOf<typeof createStation>> {
  requirePermission(caller, "organization.manage");
  if (currencyExponent(currency) === undefined) {
    const detail = "This is no active ISO 4217 currency.";
    throw new RefusedError({ code: "invalid_request", errors: [{ pointer: "/currency", detail }] });
  }
  const { organizationId } = caller;
  const station = await deps.sql.begin(async (tx) => {
    if (!(await filialExists(tx, organizationId, filialId))) throw new RefusedError({ code: "not_found" });
    const row = await stations.insertStation(tx, { organizationId, filialId, name, currency });
    const subject = { kind: "station", id: row.station_id } as const;
    const data = { name, currency, filial_id: filialId };
    await recordEvent(tx, { organizationId, actor: userActor(caller), action: "station_created", subject, data });
    await insertOutbox(tx, stationPut(row, { kind: "owner", id: caller.userId }));
    return row;
  });
  return { station: stationOnWire(station), barrier: await flush(deps, stationKey(station.station_id)) };
}

export async function handleRenameStation(
  deps: RegistryDeps,
  { caller, stationId, name }: RequestOf<typeof renameStation>,
): Promise<ReplyOf<typeof renameStation>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const station = await deps.sql.begin(async (tx) => {
    const before = await stations.lockStation(tx, organizationId, stationId);
    if (before === undefined) throw new RefusedError({ code: "not_found" });
    const row = await stations.setStationName(tx, stationId, name);
    const subject = { kind: "station", id: stationId } as const;
    const data = { from: before.name, to: name };
    await recordEvent(tx, { organizationId, actor: userActor(caller), action: "station_renamed", subject, data });
    await insertOutbox(tx, stationPut(row, { kind: "owner", id: caller.userId }));
    return row;
  });
  return { station: stationOnWire(station), barrier: await flush(deps, stationKey(stationId)) };
}

/** Suspends, resumes or closes; one that is as it is asked to be stays so, as with devices. A closed station's codes are void: nothing enrolls where nothing will be collected. */
export async function handleMoveStation(
  deps: RegistryDeps,
  { caller, stationId, move }: RequestOf<typeof moveStation>,
): Promise<ReplyOf<typeof moveStation>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const station = await deps.sql.begin(async (tx) => {
    const before = await stations.lockStation(tx, organizationId, stationId);
    if (before === undefined) throw new RefusedError({ code: "not_found" });
    if (before.status === STATUS_AFTER[move]) return before;
    const status = stationAfter(before.status, move);
    const row = await stations.setStationStatus(tx, stationId, status);
    if (status === "closed") await revokeUnspentCodesOfStation(tx, stationId);
    const subject = { kind: "station", id: stationId } as const;
    const data = { from: before.status, to: status };
    await recordEvent(tx, { organizationId, actor: userActor(caller), action: ACTIONS[move], subject, data });
    await insertOutbox(tx, stationPut(row, { kind: "owner", id: caller.userId }));
    return row;
  });
  return { station: stationOnWire(station), barrier: await flush(deps, stationKey(stationId)) };
}

const STATUS_AFTER = { SUSPEND: "suspended", RESUME: "active", CLOSE: "closed" } as const;

const ACTIONS = { SUSPEND: "station_suspended", RESUME: "station_resumed", CLOSE: "station_closed" } as const;
