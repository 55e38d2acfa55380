import type { Queryable } from "../../db/pool.ts";

/** Deletes up to `rows` counters whose window is over; returns how many. */
export async function deleteOldLoginAttempts(sql: Queryable, rows: number): Promise<number> {
  const result = await sql`
    delete from login_attempts where key in (
      select key from login_attempts where expire < extract(epoch from now()) * 1000 limit ${rows})`;
  return result.count;
}
