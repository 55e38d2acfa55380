import type { Queryable, Transaction } from "../../db/pool.ts";

/** Notes that the user has logged in there now, and forgets all but the newest `keep` addresses. The user's row is locked. */
export async function rememberAddress(
  sql: Transaction,
  place: { readonly userId: number; readonly addressHash: Buffer },
  keep: number,
): Promise<void> {
  const { userId, addressHash } = place;
  await sql`
    insert into known_addresses (user_id, address_hash) values (${userId}, ${addressHash})
    on conflict (user_id, address_hash) do update set last_login_at = now()`;
  await sql`
    delete from known_addresses
    where user_id = ${userId} and address_hash in (
      select address_hash from known_addresses where user_id = ${userId}
      order by last_login_at desc, address_hash offset ${keep})`;
}

/** Deletes up to `rows` addresses that were last used so many days ago; returns how many. */
export async function deleteOldKnownAddresses(
  sql: Queryable,
  { olderThanDays, rows }: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const result = await sql`
    delete from known_addresses where (user_id, address_hash) in (
      select user_id, address_hash from known_addresses
      where last_login_at <= now() - ${olderThanDays}::float8 * interval '1 day' limit ${rows})`;
  return result.count;
}
