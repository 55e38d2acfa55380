/** Stations that a bus has lost, and that must be told their provider again. */
import type { Transaction } from "../../db/pool.ts";

export interface Recovery {
  /** When the stations themselves were told anew; as text, because a date would lose its microseconds. */
  readonly announced: string;
  /** The newest station that is marked. */
  readonly marked_through: number;
}

/** What is still to be marked, held until the transaction ends; undefined when nothing is, or another is at it. */
export async function takeRecovery(sql: Transaction): Promise<Recovery | undefined> {
  const [row] = await sql<Recovery[]>`
    select a.finished_at::text as announced,
      case when r.announced_at = a.finished_at then r.marked_through else 0 end as marked_through
    from provider_recovery r join bus_announcements a on a.part = 'stations' and a.finished_at > r.recovered_at
    for update of r skip locked`;
  return row;
}

/** Marks up to `limit` stations after that one as not told; returns the newest one, or undefined when there is none. */
export async function markUntold(sql: Transaction, after: number, limit: number): Promise<number | undefined> {
  const [row] = await sql<{ newest: number | null }[]>`
    with page as (
      select station_id from stations where station_id > ${after} order by station_id limit ${limit}
    ), marked as (
      update stations set provider_told = false where station_id in (select station_id from page)
    )
    select max(station_id) as newest from page`;
  return row?.newest ?? undefined;
}

/** Notes how far the marking for an announcement has come. */
export async function noteMarked(sql: Transaction, { announced, marked_through }: Recovery): Promise<void> {
  await sql`
    update provider_recovery set announced_at = ${announced}::text::timestamptz, marked_through = ${marked_through}`;
}

/** Every station is marked for this announcement. */
export async function noteRecovered(sql: Transaction, announced: string): Promise<void> {
  await sql`
    update provider_recovery
    set recovered_at = ${announced}::text::timestamptz, announced_at = null, marked_through = 0`;
}
