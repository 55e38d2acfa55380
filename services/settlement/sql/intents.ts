/** Intents beyond a station's bounded state, in PostgreSQL. One SQL operation per function. */
import type { OrderSnapshot } from "../../../machines/station/state.ts";
import type * as intents from "../../bus/messages/intents.ts";
import type { RequestOf } from "../../bus/operation.ts";
import type { Database, ExpiredRows } from "../../db/pool.ts";
import { keyText } from "../../db/stored-text.ts";

interface PreparedIntent {
  /** The same id for the same key, otherwise a new one; undefined where another request has just written the key. */
  readonly intentId: number | undefined;
  /** The order that the key was first used for; without a key, the order of the request. */
  readonly keyedOrderId: number;
  /** How the intent of this key ended, once the station has sent it. */
  readonly ended: string | null;
  /** Order truth at this moment; undefined when the station has no such order. */
  readonly order: OrderSnapshot | undefined;
}

/** Prepares the intent for a creation and stores how the station's newest intents ended. One round trip. */
export async function prepareIntent(
  database: Database,
  request: RequestOf<typeof intents.prepareIntent>,
): Promise<PreparedIntent> {
  const { stationId, orderId, commandId } = request;
  const ended = [request.ended, request.endedBefore].filter((intent) => intent !== undefined);
  const key = commandId === undefined ? null : keyText(commandId);
  const [row] = await database<
    [
      {
        intent_id: number | null;
        keyed_order_id: number | null;
        ended: string | null;
        display_number: number | null;
        amount_minor: string;
        currency: string;
        status: OrderSnapshot["status"];
        revision: number;
      },
    ]
  >`
    with passed_on as (
      insert into intent_records as known (intent_id, station_id, ended)
      select e.intent_id, ${stationId}, e.ended
      from unnest(${ended.map(({ intentId }) => intentId)}::bigint[], ${ended.map((each) => JSON.stringify(each))}::text[])
        as e (intent_id, ended)
      on conflict (intent_id) do update set ended = excluded.ended
      where known.ended is null and known.station_id = excluded.station_id
    ), known as (
      select intent_id, order_id, ended from intent_records where station_id = ${stationId} and command_id = ${key}::text
    ), drawn as (
      insert into intent_records (intent_id, station_id, command_id, order_id)
      select nextval('intent_ids'), ${stationId}, ${key}::text, ${orderId}
      from orders
      where station_id = ${stationId} and order_id = ${orderId} and ${key}::text is not null
        and not exists (select from known)
      on conflict (station_id, command_id) where command_id is not null do nothing
      returning intent_id, order_id, ended
    ), unkeyed as (
      select nextval('intent_ids') as intent_id, ${orderId}::bigint as order_id, null::text as ended
      where ${key}::text is null
    ), intent as (
      select * from known union all select * from drawn union all select * from unkeyed
    )
    select i.intent_id, i.order_id as keyed_order_id, i.ended,
      o.display_number, o.total_minor::text as amount_minor, o.currency, o.status, o.revision
    from (select) as one left join intent i on true
      left join orders o on o.station_id = ${stationId} and o.order_id = ${orderId}`;
  const { display_number: orderDisplayNumber, amount_minor: amountMinor, currency, status, revision } = row;
  return {
    intentId: row.intent_id ?? undefined,
    keyedOrderId: row.keyed_order_id ?? orderId,
    ended: row.ended,
    order:
      orderDisplayNumber === null
        ? undefined
        : { orderId, orderDisplayNumber, amountMinor, currency, status, revision },
  };
}

/** How the intent ended, as its station sent it; undefined before that. */
export async function findEndedIntent(
  database: Database,
  key: { readonly stationId: number; readonly intentId: number },
): Promise<string | undefined> {
  const [row] = await database<{ ended: string }[]>`
    select ended from intent_records
    where intent_id = ${key.intentId} and station_id = ${key.stationId} and ended is not null`;
  return row?.ended;
}

/** The status of an order. */
export async function findOrderStatus(
  database: Database,
  orderId: number,
): Promise<OrderSnapshot["status"] | undefined> {
  const [row] = await database<{ status: OrderSnapshot["status"] }[]>`
    select status from orders where order_id = ${orderId}`;
  return row?.status;
}

/** Removes a batch of records that are past their retention, and returns how many there were. */
export async function removeIntentRecords(database: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const deleted = await database`
    delete from intent_records where intent_id in (
      select intent_id from intent_records
      where created_at < now() - make_interval(days => ${olderThanDays})
      order by created_at limit ${rows})`;
  return deleted.count;
}
