/** What the log has lost and the trail still has. One SQL operation per function. */
import { LOG_LOST } from "../../db/intent-history.ts";
import type { Database, Transaction } from "../../db/pool.ts";

/** Whether the trail has this very commit: of this station, at this place in the stream, made at this moment. */
export async function hasCopied(
  database: Database,
  commit: { readonly stationId: number; readonly streamSequence: number; readonly atMs: number },
): Promise<boolean> {
  const rows = await database`
    select from station_events
    where station_id = ${commit.stationId} and stream_sequence = ${commit.streamSequence}
      and at = to_timestamp(${commit.atMs}::double precision / 1000.0) limit 1`;
  return rows.length > 0;
}

/** Up to `limit` stations of which something behind this place in the stream is copied, after one of them, by id. */
export async function selectStationsBehind(
  database: Database,
  page: { readonly sequence: number; readonly sinceId: number; readonly limit: number },
): Promise<number[]> {
  const rows = await database<{ station_id: number }[]>`
    select station_id from audit_heads
    where stream_sequence > ${page.sequence} and station_id > ${page.sinceId} order by station_id limit ${page.limit}`;
  return rows.map((row) => row.station_id);
}

/** Copied commits of a station that stand behind a place in the stream, in versions of the trail. */
export interface CopiedBehind {
  readonly stationId: number;
  readonly organizationId: number;
  readonly fromVersion: number;
  readonly toVersion: number;
  /** What the trail's versions are ahead of the log's. */
  readonly offset: number;
}

/** Without what earlier losses have taken already. */
export async function selectCopiedBehind(
  database: Database,
  key: { readonly sequence: number; readonly stationIds: readonly number[] },
): Promise<CopiedBehind[]> {
  return database<CopiedBehind[]>`
    select h.station_id as "stationId", max(e.organization_id) as "organizationId", min(e.version) as "fromVersion",
           max(e.version) as "toVersion", coalesce(max(h.version_offset), 0) as offset
    from audit_heads h join station_events e using (station_id)
    where h.station_id = any(${[...key.stationIds]}::bigint[]) and e.stream_sequence > ${key.sequence}
      and e.type <> ${LOG_LOST}
      and not exists (
        select from station_events l
        where l.station_id = e.station_id and l.type = ${LOG_LOST}
          and e.version between (l.data ->> 'fromVersion')::bigint and (l.data ->> 'toVersion')::bigint)
    group by h.station_id order by h.station_id`;
}

/** A range of commits that the log of a station has lost. */
export interface Loss {
  readonly stationId: number;
  readonly organizationId: number;
  readonly fromVersion: number;
  readonly toVersion: number;
}

/**
 * Says in the trail what was lost, and returns under which version. What the station commits next continues behind it.
 */
export async function insertLoss(sql: Transaction, loss: Loss, atMs: number): Promise<number> {
  const { stationId, organizationId, fromVersion, toVersion } = loss;
  const [row] = await sql<[{ version: number }]>`
    with head as (
      update audit_heads set version = version + 1, version_offset = null
      where station_id = ${stationId} returning version
    )
    insert into station_events (station_id, version, ordinal, organization_id, at, type, actor_kind, actor_id, actor_name,
                                data, machine_version, stream_sequence)
    select ${stationId}, version, 0, ${organizationId}, to_timestamp(${atMs}::double precision / 1000.0), ${LOG_LOST},
           'system', 0, '',
           jsonb_build_object('fromVersion', ${fromVersion}::bigint, 'toVersion', ${toVersion}::bigint), 0, 0
    from head returning version`;
  return row.version;
}

/** These stations have nothing behind this place any more. */
export async function noteStationsAt(
  sql: Transaction,
  key: { readonly stationIds: readonly number[]; readonly sequence: number },
): Promise<void> {
  await sql`
    update audit_heads set stream_sequence = least(stream_sequence, ${key.sequence})
    where station_id = any(${[...key.stationIds]}::bigint[])`;
}
