/** Removing what has outlived its retention, and what the figures read. */
import type { Queryable } from "../../db/pool.ts";

/** Returns how many were removed. */
export async function deleteEndedTasks(
  sql: Queryable,
  { olderThanDays, rows }: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const removed = await sql`
    delete from serving_tasks where task_id in (
      select task_id from serving_tasks
      where ended_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return removed.count;
}

/** How long the oldest offer whose time is over has waited to be expired; 0 when there is none. */
export async function readOldestDueAgeMs(sql: Queryable): Promise<number> {
  const [row] = await sql<[{ age_ms: number | null }]>`
    select extract(epoch from now() - min(expires_at))::float8 * 1000 as age_ms
    from serving_tasks where status = 'offered' and expires_at <= now()`;
  return row.age_ms ?? 0;
}
