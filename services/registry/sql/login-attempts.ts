import type { Queryable } from "../../db/pool.ts";

/** Removes counters whose window is over. */
export async function deleteOldLoginAttempts(sql: Queryable): Promise<void> {
  await sql`delete from login_attempts where expire < extract(epoch from now()) * 1000`;
}
