/** The answers kept under idempotency keys. */
import type { Order } from "../../bus/messages/orders.ts";
import type { Database } from "../../db/pool.ts";

/** The order as it was opened under this key, or undefined. */
export async function findOpening(
  database: Database,
  key: { readonly userId: number; readonly idempotencyKey: string },
): Promise<Order | undefined> {
  const [row] = await database<{ opened: Order }[]>`
    select opened from order_openings where user_id = ${key.userId} and idempotency_key = ${key.idempotencyKey}`;
  return row?.opened;
}

/** Removes a batch of answers that are past their retention, and returns how many there were. */
export async function purgeOpenings(
  database: Database,
  bounds: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const purged = await database`
    delete from order_openings where (user_id, idempotency_key) in (
      select user_id, idempotency_key from order_openings
      where created_at < now() - make_interval(days => ${bounds.olderThanDays})
      order by created_at limit ${bounds.rows})`;
  return purged.count;
}
