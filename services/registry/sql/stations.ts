import type { StationStatus } from "../../../machines/standing.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface StationRow {
  readonly station_id: number;
  readonly organization_id: number;
  readonly filial_id: number;
  readonly name: string;
  readonly currency: string;
  readonly status: StationStatus;
  readonly sandbox: boolean;
  readonly revision: number;
  readonly created_at: Date;
}

interface NewStation {
  readonly organizationId: number;
  readonly filialId: number;
  readonly name: string;
  readonly currency: string;
  /** Identifies a seeded station of the sandbox; undefined for every other station. */
  readonly seed?: string;
  /** A station for tests. All stations of the sandbox organization are. */
  readonly sandbox?: boolean;
}

export async function createStation(sql: Queryable, station: NewStation): Promise<StationRow> {
  const [row] = await sql<[StationRow]>`
    insert into stations (organization_id, filial_id, name, currency, sandbox, seed)
    select organization_id, ${station.filialId}, ${station.name}, ${station.currency},
      sandbox or ${station.sandbox ?? false}, ${station.seed ?? null}
    from organizations where organization_id = ${station.organizationId}
    returning *`;
  return row;
}

/** Up to `limit` stations of the organization, of one of its filials or of one status, after one of them, by id. */
export async function listStations(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly filialId: number | undefined;
    readonly status: StationRow["status"] | undefined;
    readonly sinceId: number;
    readonly limit: number;
  },
): Promise<StationRow[]> {
  const ofFilial = page.filialId === undefined ? sql`` : sql`and filial_id = ${page.filialId}`;
  const ofStatus = page.status === undefined ? sql`` : sql`and status = ${page.status}`;
  return sql<StationRow[]>`
    select * from stations
    where organization_id = ${page.organizationId} ${ofFilial} ${ofStatus} and station_id > ${page.sinceId}
    order by station_id limit ${page.limit}`;
}

export async function getStation(
  sql: Queryable,
  organizationId: number,
  stationId: number,
  lock = sql``,
): Promise<StationRow | undefined> {
  const [row] = await sql<StationRow[]>`
    select * from stations where organization_id = ${organizationId} and station_id = ${stationId} ${lock}`;
  return row;
}

/** The station, locked until the transaction ends, so that its changes follow one another. */
export const lockStation = async (
  tx: Transaction,
  organizationId: number,
  stationId: number,
): Promise<StationRow | undefined> => await getStation(tx, organizationId, stationId, tx`for update`);

/** The station, which no other transaction changes until this one ends. Several transactions may hold it at once. */
export const holdStation = async (
  tx: Transaction,
  organizationId: number,
  stationId: number,
): Promise<StationRow | undefined> => await getStation(tx, organizationId, stationId, tx`for share`);

/** The sandbox station of that seed, unless it was closed; held as above. */
export async function holdSeededStation(
  sql: Transaction,
  organizationId: number,
  seed: string,
): Promise<StationRow | undefined> {
  const [row] = await sql<StationRow[]>`
    select * from stations where organization_id = ${organizationId} and seed = ${seed} and status <> 'closed'
    for share`;
  return row;
}

export async function renameStation(sql: Queryable, stationId: number, name: string): Promise<StationRow> {
  const [row] = await sql<[StationRow]>`
    update stations set name = ${name}, revision = revision + 1 where station_id = ${stationId} returning *`;
  return row;
}

export async function moveStation(sql: Queryable, stationId: number, status: StationStatus): Promise<StationRow> {
  const [row] = await sql<[StationRow]>`
    update stations set status = ${status}, revision = revision + 1 where station_id = ${stationId} returning *`;
  return row;
}

/** Stations of all organizations after one of them, by id. */
export async function announceStations(
  sql: Queryable,
  { sinceId, limit }: { readonly sinceId: number; readonly limit: number },
): Promise<StationRow[]> {
  return sql<StationRow[]>`select * from stations where station_id > ${sinceId} order by station_id limit ${limit}`;
}
