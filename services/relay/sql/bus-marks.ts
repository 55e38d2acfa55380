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
 * The newest sequence of each stream that others have noted durably since its last mark: of what the relay delivered, and of
 * what the audit service copied.
 */
export async function selectNotedSequences(sql: Database): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ stream: string; sequence: number }[]>`
    select stream, max(sequence) as sequence from (
      select o.stream, o.sequence from outbox o join bus_marks m using (stream)
      where o.delivered_at > (select min(marked_at) from bus_marks) and o.delivered_at > m.marked_at
      union all
      select stream, sequence from audit_position) as noted
    where sequence is not null group by stream`;
  return new Map(rows.map(({ stream, sequence }) => [stream, sequence]));
}
