/** Reading orders. One SQL operation per function; each is confined to an organization or a station. */
import type { Order } from "../../bus/messages/orders.ts";
import type { Database, Queryable } from "../../db/pool.ts";
import { readStoredJson } from "../../db/stored-text.ts";

interface OrderRow {
  readonly order_id: number;
  readonly display_number: number;
  readonly station_id: number;
  readonly status: Order["status"];
  readonly revision: number;
  readonly currency: string;
  readonly total_minor: string;
  readonly opened_at_ms: number;
  readonly lines: Order["lines"];
  readonly transaction: Order["transaction"];
}

/** An order with its lines and its transaction, in the shape of the bus message, in one read. */
const orderColumns = (sql: Queryable) => sql`
  o.order_id, o.display_number, o.station_id, o.status, o.revision, o.currency, o.total_minor::text as total_minor,
  floor(extract(epoch from o.opened_at) * 1000)::bigint as opened_at_ms,
  coalesce(
    (select jsonb_agg(
       jsonb_build_object('name', l.name, 'quantity', l.quantity, 'unitAmountMinor', l.unit_amount_minor::text)
       order by l.ordinal)
     from order_lines l where l.order_id = o.order_id),
    '[]') as lines,
  (select jsonb_build_object(
     'transactionId', t.transaction_id, 'intentId', t.intent_id, 'route', t.route,
     'amountMinor', t.amount_minor::text, 'currency', t.currency, 'reference', t.reference,
     'settledAtMs', floor(extract(epoch from t.settled_at) * 1000)::bigint)
   from transactions t where t.order_id = o.order_id and t.kind = 'sale') as transaction`;

function toOrder(row: OrderRow): Order {
  return {
    orderId: row.order_id,
    orderDisplayNumber: row.display_number,
    stationId: row.station_id,
    status: row.status,
    revision: row.revision,
    currency: row.currency,
    totalMinor: row.total_minor,
    lines: row.lines,
    transaction: readStoredJson(row.transaction),
    openedAtMs: row.opened_at_ms,
  };
}

/** An order of the organization, or undefined. */
export async function findOrder(
  sql: Queryable,
  key: { readonly organizationId: number; readonly orderId: number },
): Promise<Order | undefined> {
  const [row] = await sql<OrderRow[]>`
    select ${orderColumns(sql)} from orders o
    where o.organization_id = ${key.organizationId} and o.order_id = ${key.orderId}`;
  return row === undefined ? undefined : toOrder(row);
}

/** Up to `limit` orders of the organization or of one of its stations, newest first: the newest of all, or those before one. */
export async function selectOrders(
  database: Database,
  filter: {
    readonly organizationId: number;
    readonly stationId: number | undefined;
    readonly status: Order["status"] | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<Order[]> {
  const atStation = filter.stationId === undefined ? database`` : database`and o.station_id = ${filter.stationId}`;
  // The word itself, not a parameter: the indexes of the open and the voided orders are chosen by it.
  const ofStatus = {
    open: database`and o.status = 'open'`,
    paid: database`and o.status = 'paid'`,
    voided: database`and o.status = 'voided'`,
    all: database``,
  }[filter.status ?? "all"];
  const before = filter.beforeId === undefined ? database`` : database`and o.order_id < ${filter.beforeId}`;
  const rows = await database<OrderRow[]>`
    select ${orderColumns(database)} from orders o
    where o.organization_id = ${filter.organizationId} ${atStation} ${ofStatus} ${before}
    order by o.order_id desc limit ${filter.limit}`;
  return rows.map(toOrder);
}

/** What an order of the organization is now, locked until the transaction ends; undefined when there is none. */
export async function lockOrder(
  sql: Queryable,
  key: { readonly organizationId: number; readonly orderId: number },
): Promise<Order | undefined> {
  // The lock comes first and the read after it, so that the read sees what was committed while this waited.
  await sql`
    select from orders where organization_id = ${key.organizationId} and order_id = ${key.orderId} for update`;
  return await findOrder(sql, key);
}
