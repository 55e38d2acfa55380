/** Writing orders. One SQL operation per function; all of them run in their caller's transaction. */
import type { StationStatus } from "../../../machines/standing.ts";
import type { Order } from "../../bus/messages/orders.ts";
import type { Transaction } from "../../db/pool.ts";
import type { OrderLine } from "../order-total.ts";

/** A station of the organization, as far as an order concerns it. */
export async function findStation(
  sql: Transaction,
  key: { readonly organizationId: number; readonly stationId: number },
): Promise<{ readonly currency: string; readonly status: StationStatus } | undefined> {
  const [row] = await sql<{ currency: string; status: StationStatus }[]>`
    select currency, status from stations
    where organization_id = ${key.organizationId} and station_id = ${key.stationId}`;
  return row;
}

export interface NewOrder {
  readonly organizationId: number;
  readonly stationId: number;
  readonly currency: string;
  readonly lines: readonly OrderLine[];
  readonly totalMinor: bigint;
  readonly openedBy: number;
}

/** Draws the station's next order number and writes the order with its lines. Holds the station's counter until the end. */
export async function insertOrder(sql: Transaction, order: NewOrder): Promise<Order> {
  const { organizationId, stationId, currency, lines, openedBy } = order;
  const totalMinor = order.totalMinor.toString();
  const [row] = await sql<{ order_id: number; display_number: number; revision: number; opened_at_ms: number }[]>`
    with numbered as (
      insert into order_counters as c (station_id, last_number) values (${stationId}, 1)
      on conflict (station_id) do update set last_number = c.last_number + 1
      returning last_number
    ), opened as (
      insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
      select ${organizationId}, ${stationId}, last_number, ${currency}, ${totalMinor}::bigint, ${openedBy} from numbered
      returning order_id, display_number, revision, opened_at
    ), written as (
      insert into order_lines (order_id, ordinal, name, quantity, unit_amount_minor)
      select opened.order_id, l.ordinal - 1, l.line ->> 'name', (l.line ->> 'quantity')::integer,
             (l.line ->> 'unitAmountMinor')::bigint
      from opened, jsonb_array_elements(${sql.json([...lines])}) with ordinality as l (line, ordinal)
    )
    select order_id, display_number, revision, floor(extract(epoch from opened_at) * 1000)::bigint as opened_at_ms
    from opened`;
  if (row === undefined) throw new Error("An order was not inserted.");
  return {
    orderId: row.order_id,
    orderDisplayNumber: row.display_number,
    stationId,
    status: "open",
    revision: row.revision,
    currency,
    totalMinor,
    lines: [...lines],
    transaction: null,
    openedAtMs: row.opened_at_ms,
  };
}

/**
 * Replaces the lines and the total: a new revision, which is returned. The caller holds the order's lock and knows it to
 * be open as `before`.
 */
export async function replaceLines(
  sql: Transaction,
  before: Order,
  next: { readonly lines: readonly OrderLine[]; readonly totalMinor: bigint },
): Promise<Order> {
  const { orderId } = before;
  const totalMinor = next.totalMinor.toString();
  await sql`
    with fewer as (
      delete from order_lines where order_id = ${orderId} and ordinal >= ${next.lines.length}
    ), written as (
      insert into order_lines (order_id, ordinal, name, quantity, unit_amount_minor)
      select ${orderId}::bigint, l.ordinal - 1, l.line ->> 'name', (l.line ->> 'quantity')::integer,
             (l.line ->> 'unitAmountMinor')::bigint
      from jsonb_array_elements(${sql.json([...next.lines])}) with ordinality as l (line, ordinal)
      on conflict (order_id, ordinal) do update
      set name = excluded.name, quantity = excluded.quantity, unit_amount_minor = excluded.unit_amount_minor
    )
    update orders set total_minor = ${totalMinor}::bigint, revision = revision + 1 where order_id = ${orderId}`;
  return { ...before, revision: before.revision + 1, totalMinor, lines: [...next.lines] };
}

/** Voids the order and returns it. The caller holds the order's lock and knows it to be open as `before`. */
export async function markVoided(sql: Transaction, before: Order): Promise<Order> {
  await sql`update orders set status = 'voided', revision = revision + 1 where order_id = ${before.orderId}`;
  return { ...before, revision: before.revision + 1, status: "voided" };
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
