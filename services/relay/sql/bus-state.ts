/** What the relay knows about the bus: the newest message of each stream, and what it must announce to the bus again. */
import type { OutboxRow } from "../../db/outbox.ts";
import type { Database } from "../../db/pool.ts";
import { RELAY_LIMITS } from "../limits.ts";
import { fence, LeaseLostError } from "./leader-lease.ts";

/**
 * The newest message of a stream that the relay has seen: the stream must still have it after any fault. `created` and
 * `stored` are the server's own texts for when the stream was created and the message was stored.
 */
export interface Mark {
  readonly stream: string;
  readonly created: string;
  readonly sequence: number;
  readonly stored: string;
}

export async function selectMarks(sql: Database): Promise<Map<string, Mark>> {
  const rows = await sql<Mark[]>`select stream, created, sequence, stored from bus_marks`;
  return new Map(rows.map((row) => [row.stream, row]));
}

/** A mark to write; for a log that has lost something, also the newest sequence that it is known to have had. */
export interface MovedMark extends Mark {
  readonly lostThrough?: number | undefined;
}

/**
 * Writes the new marks, and requests an announcement of the lost parts from their beginning, also where one is under way,
 * because the bus may have lost entries that it has announced. Returns each `uncopied` log, which has lost commits that the
 * audit copy does not have; the copier may have recorded the loss before. One statement, so that a relay that stalls holds no
 * lock. Throws `LeaseLostError`.
 */
export async function noteMarks(
  sql: Database,
  epoch: number,
  found: {
    readonly moved: readonly MovedMark[];
    readonly lost: readonly AnnouncedPart[];
    /** How long ago the relay read the streams: a row that was delivered since is not in the marks. */
    readonly ageMs: number;
  },
): Promise<readonly string[]> {
  const [held] = await sql<{ uncopied: string[] }[]>`
    ${fence(sql, epoch)},
    requested as (
      insert into bus_announcements (part) select part from fence, unnest(${[...found.lost]}::text[]) as part
      on conflict (part) do update
      set told_through = 0, requested_at = clock_timestamp(), finished_at = null),
    noted as (
      insert into bus_marks (stream, created, sequence, stored, marked_at, uncopied)
      select r.stream, r.created, r.sequence, r.stored, clock_timestamp() - ${found.ageMs}::float8 * interval '1 ms', coalesce(r."lostThrough" > case
          when p.lost_at > m.marked_at then p.lost_through else greatest(p.sequence, p.read_through, 0) end, false)
      from fence, jsonb_to_recordset(${JSON.stringify(found.moved)}::text::jsonb)
        as r (stream text, created text, sequence bigint, stored text, "lostThrough" bigint)
        left join bus_marks m using (stream) left join audit_position p using (stream)
      on conflict (stream) do update
      set created = excluded.created, sequence = excluded.sequence, stored = excluded.stored,
          uncopied = bus_marks.uncopied or excluded.uncopied, marked_at = excluded.marked_at
      returning stream, uncopied)
    select array(select stream from noted where uncopied) as uncopied from fence`;
  if (held === undefined) throw new LeaseLostError(epoch);
  return held.uncopied;
}

/** Up to 1,000 stations of which the audit copy has a commit, so that a few of them belong to each log with stations. */
export async function selectCopiedStations(sql: Database): Promise<readonly number[]> {
  const rows = await sql<{ station_id: number }[]>`
    select station_id from audit_heads where stream_sequence > 0 order by station_id limit ${RELAY_LIMITS.copiedStations}`;
  return rows.map(({ station_id }) => station_id);
}

/** The logs that have lost commits that the audit copy does not have, until their stations are announced. */
export async function selectUncopiedLogs(sql: Database): Promise<ReadonlySet<string>> {
  const rows = await sql<{ stream: string }[]>`select stream from bus_marks where uncopied`;
  return new Set(rows.map(({ stream }) => stream));
}

/** Whether the audit copy has a commit of the station. A new station has none. */
export async function hasCopiedCommit(sql: Database, stationId: number): Promise<boolean> {
  const rows = await sql`select from audit_heads where station_id = ${stationId}`;
  return rows.length > 0;
}

/** The newest row of the outbox that was delivered to a stream, and where it was stored. */
export interface DeliveredRow {
  readonly row: OutboxRow;
  readonly sequence: number;
}

/** What PostgreSQL has noted of a stream. */
export interface Noted {
  /** The newest sequence that is known. */
  readonly sequence: number;
  /** Undefined when nothing was delivered to it since its last mark. */
  readonly delivered?: DeliveredRow | undefined;
}

/** By stream: the newest row that was delivered since the stream's last mark, and the newest commit that the audit service copied. */
export async function selectNoted(sql: Database): Promise<ReadonlyMap<string, Noted>> {
  const rows = await sql<
    { stream: string; copied: number; sequence: number | null; key: string; kind: string; payload: object }[]
  >`
    with delivered as (
      select distinct on (o.stream) o.stream, o.sequence, o.key, o.kind, o.payload from outbox o join bus_marks m using (stream)
      where o.delivered_at > (select min(marked_at) from bus_marks) and o.delivered_at > m.marked_at and o.sequence is not null
      order by o.stream, o.sequence desc
    )
    select stream, coalesce(p.sequence, 0) as copied, d.sequence, d.key, d.kind, d.payload
    from delivered d full join audit_position p using (stream)`;
  return new Map(
    rows.map(({ stream, copied, sequence, key, kind, payload }) => {
      if (sequence === null) return [stream, { sequence: copied }];
      const delivered = { row: { key, kind, ...payload } as OutboxRow, sequence };
      return [stream, { sequence: Math.max(copied, sequence), delivered }];
    }),
  );
}

/**
 * In this order: kill switches first; then sessions, so that people can collect cash meanwhile; stations before credentials, so
 * that a station knows its devices before they get access.
 */
export const ANNOUNCED_PARTS = ["switches", "sessions", "stations", "credentials"] as const;
export type AnnouncedPart = (typeof ANNOUNCED_PARTS)[number];

export interface PendingAnnouncement {
  readonly part: AnnouncedPart;
  /** The newest id that is announced. */
  readonly through: number;
}

export async function selectPendingAnnouncements(sql: Database): Promise<PendingAnnouncement[]> {
  return sql<PendingAnnouncement[]>`
    select part, told_through as through from bus_announcements where finished_at is null
    order by array_position(${[...ANNOUNCED_PARTS]}::text[], part)`;
}

/** Writes how far a part is announced, and whether that is all of it. Throws `LeaseLostError`. */
export async function noteAnnounced(
  sql: Database,
  epoch: number,
  { part, through, isFinished }: PendingAnnouncement & { readonly isFinished: boolean },
): Promise<void> {
  const [held] = await sql`
    ${fence(sql, epoch)},
    noted as (
      update bus_announcements
      set told_through = ${through}, finished_at = case when ${isFinished} then clock_timestamp() end
      from fence where part = ${part}),
    announced as (
      update bus_marks set uncopied = false from fence where uncopied and ${isFinished && part === "stations"})
    select epoch from fence`;
  if (held === undefined) throw new LeaseLostError(epoch);
}
