/** What an attribution must know of orders. They are the settlement service's; here they are only read. */
import type { Queryable } from "../../db/pool.ts";

/** The station of an order of the organization, or undefined. */
export async function findOrderStation(
  sql: Queryable,
  key: { readonly organizationId: number; readonly orderId: number },
): Promise<number | undefined> {
  const [row] = await sql<{ station_id: number }[]>`
    select station_id from orders where organization_id = ${key.organizationId} and order_id = ${key.orderId}`;
  return row?.station_id;
}

/** Whether the intent's own settlement was made with this money. */
export async function hasPaidItsIntent(
  sql: Queryable,
  money: { readonly intentId: number; readonly providerReference: string },
): Promise<boolean> {
  const rows = await sql`
    select 1 from transactions where intent_id = ${money.intentId} and reference = ${money.providerReference}`;
  return rows.length > 0;
}
