/** What an attribution must know of orders. They are the settlement service's; here they are only read. */
import type { Queryable } from "../../db/pool.ts";
import type { ConfigRow } from "./configs.ts";

/** Where an order was opened. */
export interface OrderPlace {
  readonly stationId: number;
  readonly filialId: number;
  /** The mode of the configs that its station uses. */
  readonly mode: ConfigRow["mode"];
}

/** The place of an order of the organization, or undefined. */
export async function findOrderPlace(
  sql: Queryable,
  key: { readonly organizationId: number; readonly orderId: number },
): Promise<OrderPlace | undefined> {
  const [row] = await sql<{ station_id: number; filial_id: number; sandbox: boolean }[]>`
    select o.station_id, s.filial_id, s.sandbox from orders o join stations s using (station_id)
    where o.organization_id = ${key.organizationId} and o.order_id = ${key.orderId}`;
  if (row === undefined) return undefined;
  return { stationId: row.station_id, filialId: row.filial_id, mode: row.sandbox ? "test" : "live" };
}

/** The order that this money has paid, by which intent and under whichever of its names, or undefined. */
export async function findOrderPaidWith(
  sql: Queryable,
  moneyNames: readonly string[],
): Promise<{ readonly orderId: number; readonly intentId: number } | undefined> {
  const [row] = await sql<{ order_id: number; intent_id: number }[]>`
    select t.order_id, t.intent_id from paid_money_names n join transactions t using (transaction_id)
    where n.name = any(${[...moneyNames]}::text[]) order by t.transaction_id limit 1`;
  return row === undefined ? undefined : { orderId: row.order_id, intentId: row.intent_id };
}
