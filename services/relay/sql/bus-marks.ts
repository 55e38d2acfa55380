/** The newest message of each stream that the relay has seen: what a stream must still have after any fault. */
import type { Database } from "../../db/pool.ts";
import type { AnnouncedPart } from "./bus-announcements.ts";
import { fence, LeaseLostError } from "./leader-lease.ts";

/** `created` and `stored` are the server's own words for when the stream was made and the message was stored. */
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

/**
 * Notes the new marks, and asks for these parts to be published from their beginning, also where that is under way: what was
 * lost now may be published already. One statement, so that a relay that stalls holds no lock. Throws `LeaseLostError`.
 */
export async function noteMarks(
  sql: Database,
  epoch: number,
  found: { readonly moved: readonly Mark[]; readonly lost: readonly AnnouncedPart[] },
): Promise<void> {
  const [held] = await sql`
    ${fence(sql, epoch)},
    requested as (
      insert into bus_announcements (part) select part from fence, unnest(${[...found.lost]}::text[]) as part
      on conflict (part) do update
      set told_through = 0, requested_at = clock_timestamp(), finished_at = null),
    noted as (
      insert into bus_marks (stream, created, sequence, stored)
      select stream, created, sequence, stored
      from fence, jsonb_to_recordset(${JSON.stringify(found.moved)}::text::jsonb)
        as r (stream text, created text, sequence bigint, stored text)
      on conflict (stream) do update
      set created = excluded.created, sequence = excluded.sequence, stored = excluded.stored,
          marked_at = clock_timestamp())
    select epoch from fence`;
  if (held === undefined) throw new LeaseLostError(epoch);
}

/**
 * The newest sequences that others have noted durably since the last marks: of what the relay delivered, and of what the
 * audit service copied.
 */
export async function selectNotedSequences(
  sql: Database,
): Promise<Readonly<Record<"stationLog" | "credentials" | "sessions" | "switches", number>>> {
  const [row] = await sql<
    [{ copied: number; stations: number; credentials: number; sessions: number; switches: number }]
  >`
    with delivered as (
      select case kind when 'station_command' then 'STATION_LOG'
               when 'credential_put' then 'KV_CREDENTIALS' when 'credential_delete' then 'KV_CREDENTIALS'
               when 'switch_set' then 'KV_SWITCHES'
               else 'KV_SESSIONS' end as stream,
             sequence, delivered_at
      from outbox where delivered_at > (select min(marked_at) from bus_marks)
    )
    select
      coalesce((select max(sequence) from audit_position), 0) as copied,
      coalesce(max(d.sequence) filter (where stream = 'STATION_LOG'), 0) as stations,
      coalesce(max(d.sequence) filter (where stream = 'KV_CREDENTIALS'), 0) as credentials,
      coalesce(max(d.sequence) filter (where stream = 'KV_SESSIONS'), 0) as sessions,
      coalesce(max(d.sequence) filter (where stream = 'KV_SWITCHES'), 0) as switches
    from delivered d join bus_marks m using (stream) where d.delivered_at > m.marked_at`;
  const { copied, stations, credentials, sessions, switches } = row;
  return { stationLog: Math.max(copied, stations), credentials, sessions, switches };
}
