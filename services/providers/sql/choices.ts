/**
 * Which config a filial's stations use, which stations are marked for the announcement, and the recovery after the bus
 * has lost data.
 */
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { ConfigRow } from "./configs.ts";

/** The stations of a filial that use its choice of this mode. */
export interface Place {
  readonly filialId: number;
  readonly mode: ConfigRow["mode"];
}

/**
 * Locks the filial until the transaction ends; false when the organization has no such filial. A station that is being
 * created refers to its filial, so it is either committed and visible from here on, or created after this transaction.
 */
export async function lockFilial(
  sql: Transaction,
  key: { readonly organizationId: number; readonly filialId: number },
): Promise<boolean> {
  const rows = await sql`
    select from filials where organization_id = ${key.organizationId} and filial_id = ${key.filialId} for update`;
  return rows.count === 1;
}

/** Writes the filial's choice with its next revision and marks its stations. */
export async function choose(sql: Transaction, choice: Place & { readonly configId: number | null }): Promise<void> {
  const { filialId, mode, configId } = choice;
  await sql`
    insert into provider_choices as c (filial_id, mode, config_id) values (${filialId}, ${mode}, ${configId})
    on conflict (filial_id, mode) do update set config_id = excluded.config_id, revision = c.revision + 1`;
  await sql`
    update stations set provider_told = false where filial_id = ${filialId} and sandbox = ${mode === "test"}`;
}

export interface MarkedStation {
  readonly station_id: number;
  readonly filial_id: number;
  readonly sandbox: boolean;
}

/** Whether any station is marked, and whether stations are still to be marked after a loss of the bus. */
export async function findMarks(
  sql: Queryable,
): Promise<{ readonly hasMarked: boolean; readonly wantsRecovery: boolean }> {
  const [row] = await sql<[{ has_marked: boolean; wants_recovery: boolean }]>`
    select exists (select from stations where not provider_told) as has_marked,
      exists (select from provider_recovery r join bus_announcements a
        on a.part = 'stations' and a.finished_at > r.recovered_at) as wants_recovery`;
  return { hasMarked: row.has_marked, wantsRecovery: row.wants_recovery };
}

/** Takes up to `limit` marked stations and removes their marks. Skips those that another transaction has taken. */
export async function takeMarkedStations(sql: Transaction, limit: number): Promise<MarkedStation[]> {
  return sql<MarkedStation[]>`
    update stations set provider_told = true where station_id in (
      select station_id from stations where not provider_told order by station_id limit ${limit} for update skip locked)
    returning station_id, filial_id, sandbox`;
}

/**
 * The same for one place. Waits for stations that another transaction has taken, so that its outbox rows are then
 * committed.
 */
export async function takeMarkedStationsOf(sql: Transaction, place: Place, limit: number): Promise<MarkedStation[]> {
  return sql<MarkedStation[]>`
    update stations set provider_told = true where station_id in (
      select station_id from stations
      where filial_id = ${place.filialId} and sandbox = ${place.mode === "test"} and not provider_told
      order by station_id limit ${limit} for update)
    returning station_id, filial_id, sandbox`;
}

export interface ChoiceRow {
  readonly filial_id: number;
  readonly mode: ConfigRow["mode"];
  readonly config_id: number | null;
  readonly revision: number;
}

/** The choices of these filials. Read after the stations were taken, so that no choice is out of date. */
export async function readChoices(sql: Transaction, filialIds: readonly number[]): Promise<ChoiceRow[]> {
  return sql<ChoiceRow[]>`
    select filial_id, mode, config_id, revision from provider_choices
    where filial_id = any(${[...filialIds]}::bigint[])`;
}

export async function listStationIds(sql: Queryable, place: Place, limit: number): Promise<number[]> {
  const rows = await sql<{ station_id: number }[]>`
    select station_id from stations where filial_id = ${place.filialId} and sandbox = ${place.mode === "test"}
    order by station_id limit ${limit}`;
  return rows.map((row) => row.station_id);
}

/** Whether an outbox row of one of the place's stations waits for the relay. */
export async function hasUndeliveredStation(sql: Queryable, place: Place): Promise<boolean> {
  const [row] = await sql<[{ waits: boolean }]>`
    select exists (
      select 1 from outbox where delivered_at is null and key in (
        select 'station.' || station_id from stations
        where filial_id = ${place.filialId} and sandbox = ${place.mode === "test"})
    ) as waits`;
  return row.waits;
}

/**
 * For each stream, the last position that the relay has delivered to the place's stations within the last `withinMs`.
 */
export async function deliveredPositions(
  sql: Queryable,
  place: Place,
  withinMs: number,
): Promise<Record<string, number>> {
  const rows = await sql<{ stream: string; sequence: number }[]>`
    select stream, max(sequence) as sequence from outbox
    where delivered_at > now() - ${withinMs}::float8 * interval '1 ms' and sequence is not null and key in (
      select 'station.' || station_id from stations
      where filial_id = ${place.filialId} and sandbox = ${place.mode === "test"})
    group by stream`;
  return Object.fromEntries(rows.map(({ stream, sequence }) => [stream, sequence]));
}

interface Recovery {
  /** When the relay announced the stations again; as text, because a date would lose its microseconds. */
  readonly announced: string;
  /** The newest station that is marked. */
  readonly marked_through: number;
}

/**
 * The recovery that still has to mark stations, locked until the transaction ends. Undefined when there is none, or
 * when another process has locked it.
 */
export async function takeRecovery(sql: Transaction): Promise<Recovery | undefined> {
  const [row] = await sql<Recovery[]>`
    select a.finished_at::text as announced,
      case when r.announced_at = a.finished_at then r.marked_through else 0 end as marked_through
    from provider_recovery r join bus_announcements a on a.part = 'stations' and a.finished_at > r.recovered_at
    for update of r skip locked`;
  return row;
}

/** Marks up to `limit` stations after that one; returns the newest one, or undefined when there is none. */
export async function markStations(sql: Transaction, after: number, limit: number): Promise<number | undefined> {
  const [row] = await sql<{ newest: number | null }[]>`
    with page as (
      select station_id from stations where station_id > ${after} order by station_id limit ${limit}
    ), marked as (
      update stations set provider_told = false where station_id in (select station_id from page)
    )
    select max(station_id) as newest from page`;
  return row?.newest ?? undefined;
}

/** Stores how far the marking for an announcement has come. */
export async function noteMarked(sql: Transaction, { announced, marked_through }: Recovery): Promise<void> {
  await sql`
    update provider_recovery set announced_at = ${announced}::text::timestamptz, marked_through = ${marked_through}`;
}

/** Stores that every station is marked for this announcement. */
export async function noteRecovered(sql: Transaction, announced: string): Promise<void> {
  await sql`
    update provider_recovery
    set recovered_at = ${announced}::text::timestamptz, announced_at = null, marked_through = 0`;
}
