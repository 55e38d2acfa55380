/** What has to be told to the bus anew, and how far that has come. */
import type { Database } from "../../db/pool.ts";
import { fence, LeaseLostError } from "./leader-lease.ts";

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

export async function selectPendingAnnouncements(sql: Database): Promise<PendingAnnouncement[]> {
  return sql<PendingAnnouncement[]>`
    select part, told_through from bus_announcements where finished_at is null
    order by array_position(${[...ANNOUNCED_PARTS]}::text[], part)`;
}

/** Notes how far a part is published, and whether that is all of it. Throws `LeaseLostError`. */
export async function noteAnnounced(
  sql: Database,
  epoch: number,
  told: { readonly part: AnnouncedPart; readonly toldThrough: number; readonly isFinished: boolean },
): Promise<void> {
  const [held] = await sql`
    ${fence(sql, epoch)},
    noted as (
      update bus_announcements
      set told_through = ${told.toldThrough}, finished_at = case when ${told.isFinished} then clock_timestamp() end
      from fence where part = ${told.part})
    select epoch from fence`;
  if (held === undefined) throw new LeaseLostError(epoch);
}
