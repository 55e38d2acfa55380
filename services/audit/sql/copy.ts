/**
 * The audit copy in PostgreSQL: its position, new rows, commits that the station log has lost, and retention. One SQL operation
 * per function.
 */
import { LOG_LOST } from "../../db/intent-history.ts";
import type { Database, ExpiredRows, Transaction } from "../../db/pool.ts";
import { storedJson } from "../../db/stored-text.ts";
import type { BatchRows, CopyHead } from "../copy/rows.ts";
import { AUDIT_LIMITS } from "../limits.ts";

/** One copier and one log: only the copier with the hold of the log copies it. */
export interface Hold {
  readonly stream: string;
  readonly holder: string;
}

/** Another copier has the hold of the log, so this one must stop. */
export class HoldLostError extends Error {
  constructor() {
    super("Another process copies the station log now.");
    this.name = "HoldLostError";
  }
}

const heldUntil = (sql: Transaction | Database) =>
  sql`clock_timestamp() + make_interval(secs => ${AUDIT_LIMITS.holdMs / 1000})`;

/**
 * Takes or renews the hold, stores how far the log is read, and returns the sequence up to which everything is copied.
 * Returns undefined while another copier has the hold. The database's clock decides when a hold lapses.
 */
export async function holdPosition(
  database: Database,
  { stream, holder }: Hold,
  readThrough: number,
): Promise<number | undefined> {
  const [row] = await database<{ sequence: number }[]>`
    insert into audit_position as known (stream, holder, held_until) values (${stream}, ${holder}, ${heldUntil(database)})
    on conflict (stream) do update set holder = excluded.holder, held_until = excluded.held_until,
      read_through = greatest(known.read_through, ${readThrough})
    where known.holder = excluded.holder or known.held_until < clock_timestamp()
    returning sequence`;
  return row?.sequence;
}

/** Releases the hold, so that another copier need not wait for it to lapse. */
export async function releasePosition(database: Database, { stream, holder }: Hold): Promise<void> {
  await database`update audit_position set held_until = '-infinity' where stream = ${stream} and holder = ${holder}`;
}

/**
 * Moves the position, renews the hold and locks both until the transaction ends. Throws {@link HoldLostError} when this
 * copier no longer has the hold, or the position is not at `from`.
 */
export async function movePosition(
  sql: Transaction,
  { stream, holder }: Hold,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const moved = await sql`
    update audit_position set sequence = ${to}, held_until = ${heldUntil(sql)}
    where stream = ${stream} and holder = ${holder} and sequence = ${from}`;
  if (moved.count !== 1) throw new HoldLostError();
}

/** Like `movePosition`, but back to an earlier sequence, after the log has lost its end. Also stores how far the log was read. */
export async function movePositionBack(
  sql: Transaction,
  hold: Hold,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  await sql`
    update audit_position
    set lost_through = greatest(sequence, read_through), lost_at = clock_timestamp(), read_through = ${to}
    where stream = ${hold.stream}`;
  await movePosition(sql, hold, { from, to });
}

/** The sequence up to which everything is copied. */
export async function readPosition(database: Database, stream: string): Promise<number> {
  const [row] = await database<{ sequence: number }[]>`
    select sequence from audit_position where stream = ${stream}`;
  return row?.sequence ?? 0;
}

/** The head of each of these stations in the copy. */
export async function selectHeads(sql: Transaction, stationIds: readonly number[]): Promise<Map<number, CopyHead>> {
  const rows = await sql<{ station_id: number; version: number; offset: number | null }[]>`
    select station_id, version, version_offset as offset from audit_heads
    where station_id = any(${[...stationIds]}::bigint[])`;
  return new Map(rows.map(({ station_id, version, offset }) => [station_id, { version, offset }]));
}

/** A repetition of this and the next two functions with the same rows changes nothing. */
export async function insertEvents(sql: Transaction, events: BatchRows["events"]): Promise<void> {
  if (events.length === 0) return;
  await sql`
    insert into station_events (station_id, version, ordinal, organization_id, intent_id, at, type, actor_kind,
                                actor_id, actor_name, data, machine_version, stream_sequence)
    select station_id, version, ordinal, organization_id, intent_id, to_timestamp(at_ms / 1000.0), type, actor_kind,
           actor_id, actor_name, data, machine_version, stream_sequence
    from jsonb_to_recordset(${storedJson(events)}::text::jsonb) as r (
      station_id bigint, version bigint, ordinal integer, organization_id bigint, intent_id bigint,
      at_ms double precision, type text, actor_kind text, actor_id bigint, actor_name text, data jsonb,
      machine_version integer, stream_sequence bigint)
    on conflict (station_id, version, ordinal) do nothing`;
}

export async function upsertIntents(sql: Transaction, intents: BatchRows["intents"]): Promise<void> {
  if (intents.length === 0) return;
  await sql`
    insert into intent_history as known (intent_id, station_id, organization_id, version, at, intent)
    select intent_id, station_id, organization_id, version, to_timestamp(at_ms / 1000.0), intent
    from jsonb_to_recordset(${JSON.stringify(intents)}::text::jsonb) as r (
      intent_id bigint, station_id bigint, organization_id bigint, version bigint, at_ms double precision, intent text)
    on conflict (intent_id) do update set version = excluded.version, at = excluded.at, intent = excluded.intent
    where known.version < excluded.version`;
}

export async function upsertHeads(sql: Transaction, heads: BatchRows["heads"]): Promise<void> {
  if (heads.length === 0) return;
  const restored = heads.filter((head) => head.isRestored).map((head) => head.station_id);
  await sql`
    insert into audit_heads as known (station_id, version, version_offset, stream_sequence, collections, organization_id,
      leased_until, devices_online, devices_offline)
    select station_id, version, version_offset, stream_sequence, collections, organization_id,
      to_timestamp(leased_until_ms / 1000.0), devices_online, devices_offline
    from jsonb_to_recordset(${JSON.stringify(heads)}::text::jsonb) as r (
      station_id bigint, version bigint, version_offset bigint, stream_sequence bigint, collections jsonb,
      organization_id bigint, leased_until_ms double precision, devices_online integer, devices_offline integer)
    on conflict (station_id) do update
    set version = excluded.version, version_offset = excluded.version_offset,
        stream_sequence = excluded.stream_sequence, collections = excluded.collections,
        organization_id = excluded.organization_id, leased_until = excluded.leased_until,
        devices_online = excluded.devices_online, devices_offline = excluded.devices_offline,
        lost_collections = case when known.station_id = any(${restored}::bigint[]) then '[]' else known.lost_collections end`;
}

/**
 * Whether this commit is copied: of this station, with this sequence in the stream, made at this moment. One past the retention
 * counts as copied, because its events are deleted.
 */
export async function isCommitCopied(
  database: Database,
  commit: { readonly stationId: number; readonly streamSequence: number; readonly atMs: number },
  retentionDays: number,
): Promise<boolean> {
  const { stationId, streamSequence, atMs } = commit;
  const [row] = await database<[{ copied: boolean }]>`
    select c.at < now() - make_interval(days => ${retentionDays}) or exists (
      select from station_events e
      where e.station_id = ${stationId} and e.stream_sequence = ${streamSequence} and e.at = c.at) as copied
    from (select to_timestamp(${atMs}::double precision / 1000.0) as at) c`;
  return row.copied;
}

/** Up to `limit` ids after `sinceId` of stations with a copied commit after this sequence of the stream. */
export async function selectStationsBehind(
  database: Database,
  page: { readonly sequence: number; readonly sinceId: number; readonly limit: number },
): Promise<number[]> {
  const rows = await database<{ station_id: number }[]>`
    select station_id from audit_heads
    where stream_sequence > ${page.sequence} and station_id > ${page.sinceId} order by station_id limit ${page.limit}`;
  return rows.map((row) => row.station_id);
}

/** A range of a station's commits, by their versions in the copy. */
export interface CommitRange {
  readonly stationId: number;
  readonly organizationId: number;
  readonly fromVersion: number;
  readonly toVersion: number;
}

/**
 * The copied commits of these stations after a sequence of the stream, without those of an earlier loss, and by how much the
 * copy's versions are ahead of the log's.
 */
export async function selectCopiedBehind(
  database: Database,
  key: { readonly sequence: number; readonly stationIds: readonly number[] },
): Promise<(CommitRange & { readonly offset: number })[]> {
  return database<(CommitRange & { readonly offset: number })[]>`
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

/**
 * Adds the event that names the lost commits, stores the collections that the station must get back, and returns the event's
 * version. The station's next commit continues after it.
 */
export async function insertLoss(sql: Transaction, lost: CommitRange, atMs: number): Promise<number> {
  const { stationId, organizationId, fromVersion, toVersion } = lost;
  const [row] = await sql<[{ version: number }]>`
    with head as (
      update audit_heads
      set version = version + 1, version_offset = null, collections = null,
          lost_collections = lost_collections
            || case when collections is null then '[]' else jsonb_build_array(collections) end
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

/** Records that the log has no commit of these stations after this sequence. */
export async function moveHeadsBack(
  sql: Transaction,
  key: { readonly stationIds: readonly number[]; readonly sequence: number },
): Promise<void> {
  await sql`
    update audit_heads set stream_sequence = least(stream_sequence, ${key.sequence})
    where station_id = any(${[...key.stationIds]}::bigint[])`;
}

/** Returns how many rows it has deleted. */
export async function deleteOldEvents(database: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const deleted = await database`
    delete from station_events where (station_id, version, ordinal) in (
      select station_id, version, ordinal from station_events
      where at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}

export async function deleteOldIntents(database: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const deleted = await database`
    delete from intent_history where intent_id in (
      select intent_id from intent_history
      where at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}
