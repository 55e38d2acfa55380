/** What stations are told anew after the bus has lost data. One SQL operation per function, over many stations each. */
import type { OrderSnapshot } from "../../../machines/station/state.ts";
import type { announceOrders } from "../../bus/messages/announce.ts";
import type { ReplyOf } from "../../bus/operation.ts";
import type { Database } from "../../db/pool.ts";
import { readStoredText } from "../../db/stored-text.ts";

type Sale = ReplyOf<typeof announceOrders>["stations"][number]["sales"][number];

/** These orders of these stations, and of each station the newest one that is open, which comes last. */
export async function selectBelievedOrders(
  database: Database,
  asked: { readonly stationIds: readonly number[]; readonly orderIds: readonly number[] },
): Promise<{ readonly stationId: number; readonly order: OrderSnapshot }[]> {
  const rows = await database<
    {
      station_id: number;
      order_id: number;
      display_number: number;
      amount_minor: string;
      currency: string;
      status: OrderSnapshot["status"];
      revision: number;
    }[]
  >`
    with newest as (
      select open.order_id
      from unnest(${[...asked.stationIds]}::bigint[]) as s (station_id)
      cross join lateral (
        select order_id from orders
        where station_id = s.station_id and status = 'open' order by order_id desc limit 1) as open
    ), wanted as (
      select order_id from newest union select unnest(${[...asked.orderIds]}::bigint[])
    )
    select o.station_id, o.order_id, o.display_number, o.total_minor::text as amount_minor, o.currency, o.status, o.revision
    from wanted join orders o using (order_id)
    where o.station_id = any(${[...asked.stationIds]}::bigint[])
    order by o.station_id, o.order_id in (select order_id from newest), o.order_id`;
  return rows.map((row) => ({
    stationId: row.station_id,
    order: {
      orderId: row.order_id,
      orderDisplayNumber: row.display_number,
      amountMinor: row.amount_minor,
      currency: row.currency,
      status: row.status,
      revision: row.revision,
    },
  }));
}

/** The transactions of these intents at these stations, with who attested what. */
export async function selectSales(
  database: Database,
  asked: { readonly stationIds: readonly number[]; readonly intentIds: readonly number[] },
): Promise<{ readonly stationId: number; readonly sale: Sale }[]> {
  if (asked.intentIds.length === 0) return [];
  const rows = await database<
    {
      station_id: number;
      intent_id: number;
      transaction_id: number;
      attested_by: number;
      cashier_name: string;
      reference: string;
      settled_at_ms: number;
    }[]
  >`
    select t.station_id, t.intent_id, t.transaction_id, t.attested_by, coalesce(u.name, '') as cashier_name, t.reference,
           floor(extract(epoch from t.settled_at) * 1000)::bigint as settled_at_ms
    from transactions t left join users u on u.user_id = t.attested_by
    where t.intent_id = any(${[...asked.intentIds]}::bigint[]) and t.station_id = any(${[...asked.stationIds]}::bigint[])`;
  return rows.map((row) => {
    const { attested_by: cashierId, cashier_name: cashierName, settled_at_ms: atMs } = row;
    const attestation = { cashierId, cashierName, reference: readStoredText(row.reference), atMs };
    return {
      stationId: row.station_id,
      sale: { intentId: row.intent_id, transactionId: row.transaction_id, attestation },
    };
  });
}
