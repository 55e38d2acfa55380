/** Writing orders. One SQL operation per function; all of them run in their caller's transaction. */
import type { Order } from "../../bus/messages/settlement.ts";
import type { Transaction } from "../../db/pool.ts";
import type { OrderLine } from "../order-total.ts";

/** A station of the organization, as far as an order concerns it. */
export async function findStation(
  sql: Transaction,
  key: { readonly organizationId: number; readonly stationId: number },
): Promise<{ readonly currency: string; readonly status: string } | undefined> {
  const [row] = await sql<{ currency: string; status: string }[]>`
    select currency, status from stations
    where organization_id = ${key.organizationId} and station_id = ${key.stationId}`;
  return row;
}

/** The station's next order number. Holds the station's counter until the transaction ends. */
export async function drawDisplayNumber(sql: Transaction, stationId: number): Promise<number> {
  const [row] = await sql<{ last_number: number }[]>`
    insert into order_counters as c (station_id, last_number) values (${stationId}, 1)
    on conflict (station_id) do update set last_number = c.last_number + 1
    returning last_number`;
  if (row === undefined) throw new Error("A station's counter gave no number.");
  return row.last_number;
}

export interface NewOrder {
  readonly organizationId: number;
  readonly stationId: number;
  readonly displayNumber: number;
  readonly currency: string;
  readonly totalMinor: bigint;
  readonly openedBy: number;
}

export async function insertOrder(sql: Transaction, order: NewOrder): Promise<number> {
  const [row] = await sql<{ order_id: number }[]>`
    insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
    values (${order.organizationId}, ${order.stationId}, ${order.displayNumber}, ${order.currency},
            ${order.totalMinor.toString()}::bigint, ${order.openedBy})
    returning order_id`;
  if (row === undefined) throw new Error("An order was not inserted.");
  return row.order_id;
}

export async function insertLines(sql: Transaction, orderId: number, lines: readonly OrderLine[]): Promise<void> {
  await sql`
    insert into order_lines (order_id, ordinal, name, quantity, unit_amount_minor)
    select ${orderId}::bigint, l.ordinal - 1, l.line ->> 'name', (l.line ->> 'quantity')::integer,
           (l.line ->> 'unitAmountMinor')::bigint
    from jsonb_array_elements(${sql.json([...lines])}) with ordinality as l (line, ordinal)`;
}

export async function deleteLines(sql: Transaction, orderId: number): Promise<void> {
  await sql`delete from order_lines where order_id = ${orderId}`;
}

/** A new total is a new version. The caller holds the order's lock and knows it to be open. */
export async function updateTotal(sql: Transaction, orderId: number, totalMinor: bigint): Promise<void> {
  await sql`
    update orders set total_minor = ${totalMinor.toString()}::bigint, version = version + 1
    where order_id = ${orderId}`;
}

/** The caller holds the order's lock and knows it to be open. */
export async function markVoided(sql: Transaction, orderId: number): Promise<void> {
  await sql`update orders set status = 'voided', version = version + 1 where order_id = ${orderId}`;
}

/** Keeps the answer to an opening under its idempotency key. False when the key is taken. */
export async function insertOpening(
  sql: Transaction,
  opening: { readonly userId: number; readonly idempotencyKey: string; readonly order: Order },
): Promise<boolean> {
  const inserted = await sql`
    insert into order_openings (user_id, idempotency_key, order_id, opened)
    values (${opening.userId}, ${opening.idempotencyKey}, ${opening.order.orderId}, ${sql.json(opening.order)})
    on conflict (user_id, idempotency_key) do nothing`;
  return inserted.count === 1;
}
