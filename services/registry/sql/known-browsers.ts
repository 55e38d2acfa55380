import type { Queryable, Transaction } from "../../db/pool.ts";

/** Notes that the user has logged in there now, and forgets all but the newest `keep` browsers. The user's row is locked. */
export async function rememberBrowser(
  sql: Transaction,
  place: { readonly userId: number; readonly browserHash: Buffer },
  keep: number,
): Promise<void> {
  const { userId, browserHash } = place;
  await sql`
    insert into known_browsers (user_id, token_hash) values (${userId}, ${browserHash})
    on conflict (user_id, token_hash) do update set last_login_at = now()`;
  await sql`
    delete from known_browsers
    where user_id = ${userId} and token_hash in (
      select token_hash from known_browsers where user_id = ${userId}
      order by last_login_at desc, token_hash offset ${keep})`;
}

export async function forgetBrowser(sql: Queryable, userId: number, browserHash: Buffer): Promise<void> {
  await sql`delete from known_browsers where user_id = ${userId} and token_hash = ${browserHash}`;
}

/** Deletes up to `rows` browsers that were last used so many days ago; returns how many. */
export async function deleteOldKnownBrowsers(
  sql: Queryable,
  { olderThanDays, rows }: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const result = await sql`
    delete from known_browsers where (user_id, token_hash) in (
      select user_id, token_hash from known_browsers
      where last_login_at <= now() - ${olderThanDays}::float8 * interval '1 day' limit ${rows})`;
  return result.count;
}
