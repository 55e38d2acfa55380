/** What has to be told to the bus anew, and how far that has come. */
import type { Database, Transaction } from "../../db/pool.ts";

export const ANNOUNCED_PARTS = ["switches", "sessions", "stations", "credentials"] as const;
/**
 * In this order: what is frozen comes first, then people, who collect cash meanwhile; and a station knows its devices before
 * their credentials open the door.
 */
export type AnnouncedPart = (typeof ANNOUNCED_PARTS)[number];

export interface PendingAnnouncement {
  readonly part: AnnouncedPart;
  /** The newest id that is told. */
  readonly told_through: number;
}

/** Asks for these parts from their beginning, also where they are being told: what was lost now may be told already. */
export async function requestAnnouncements(sql: Transaction, parts: readonly AnnouncedPart[]): Promise<void> {
  if (parts.length === 0) return;
  await sql`
    insert into bus_announcements (part) select unnest(${[...parts]}::text[])
    on conflict (part) do update
    set told_through = 0, requested_at = clock_timestamp(), finished_at = null`;
}

export async function selectPendingAnnouncements(sql: Database): Promise<PendingAnnouncement[]> {
  return sql<PendingAnnouncement[]>`
    select part, told_through from bus_announcements where finished_at is null
    order by array_position(${[...ANNOUNCED_PARTS]}::text[], part)`;
}

/** Notes how far a part is told, and whether that is all of it. */
export async function noteAnnounced(
  sql: Database,
  told: { readonly part: AnnouncedPart; readonly toldThrough: number; readonly isFinished: boolean },
): Promise<void> {
  await sql`
    update bus_announcements
    set told_through = ${told.toldThrough}, finished_at = case when ${told.isFinished} then clock_timestamp() end
    where part = ${told.part}`;
}
