/** Orders in PostgreSQL. One SQL operation per function; those that write run in their caller's transaction. */
import type { StationStatus } from "../../../machines/standing.ts";
import type { OrderSnapshot } from "../../../machines/station/state.ts";
import type { announceOrders } from "../../bus/messages/announce.ts";
import type { AskedLine, Order } from "../../bus/messages/orders.ts";
import type { ReplyOf } from "../../bus/operation.ts";
import type { Database, ExpiredRows, Queryable, Transaction } from "../../db/pool.ts";
import { readStoredJson, readStoredText } from "../../db/stored-text.ts";

type OrderLine = Order["lines"][number];
type Sale = ReplyOf<typeof announceOrders>["stations"][number]["sales"][number];

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
export async function getOrder(
  sql: Queryable,
  key: { readonly organizationId: number; readonly orderId: number },
): Promise<Order | undefined> {
  const [row] = await sql<OrderRow[]>`
    select ${orderColumns(sql)} from orders o
    where o.organization_id = ${key.organizationId} and o.order_id = ${key.orderId}`;
  return row === undefined ? undefined : toOrder(row);
}

/** Up to `limit` orders of the organization or of one of its stations, newest first: the newest of all, or those before one. */
export async function listOrders(
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
  // A literal, not a parameter, so that PostgreSQL chooses the indexes of the open and the voided orders.
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

/** An order of the organization as it is now, locked until the transaction ends; undefined when there is none. */
export async function lockOrder(
  sql: Queryable,
  key: { readonly organizationId: number; readonly orderId: number },
): Promise<Order | undefined> {
  // The lock comes first and the read after it, so that the read sees what was committed while this waited.
  await sql`
    select from orders where organization_id = ${key.organizationId} and order_id = ${key.orderId} for update`;
  return await getOrder(sql, key);
}

/** What an order needs to know of its station. */
export interface OrderStation {
  readonly filialId: number;
  readonly currency: string;
  readonly status: StationStatus;
}

export async function findStation(
  sql: Transaction,
  key: { readonly organizationId: number; readonly stationId: number },
): Promise<OrderStation | undefined> {
  const [row] = await sql<OrderStation[]>`
    select filial_id as "filialId", currency, status from stations
    where organization_id = ${key.organizationId} and station_id = ${key.stationId}`;
  return row;
}

interface SoldItem {
  readonly name: string;
  readonly unitAmountMinor: string;
}

/** Those of the items that the station sells, by id. */
export async function selectItems(
  sql: Transaction,
  key: Pick<OrderStation, "filialId" | "currency"> & {
    readonly organizationId: number;
    readonly itemIds: readonly number[];
  },
): Promise<Map<number, SoldItem>> {
  const rows = await sql<(SoldItem & { readonly itemId: number })[]>`
    select item_id as "itemId", name, unit_amount_minor::text as "unitAmountMinor" from catalogue_items
    where organization_id = ${key.organizationId} and item_id = any(${[...key.itemIds]}::bigint[])
      and currency = ${key.currency} and (filial_id is null or filial_id = ${key.filialId})`;
  return new Map(rows.map(({ itemId, ...item }) => [itemId, item]));
}

interface NewOrder {
  readonly organizationId: number;
  readonly stationId: number;
  readonly currency: string;
  readonly lines: readonly OrderLine[];
  readonly totalMinor: bigint;
  readonly openedBy: number;
}

/** Takes the station's next order number and writes the order with its lines. Holds the station's counter until the end. */
export async function openOrder(sql: Transaction, order: NewOrder): Promise<Order> {
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
export async function changeOrder(
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
export async function voidOrder(sql: Transaction, before: Order): Promise<Order> {
  await sql`update orders set status = 'voided', revision = revision + 1 where order_id = ${before.orderId}`;
  return { ...before, revision: before.revision + 1, status: "voided" };
}

/** Keeps the answer to an opening under its idempotency key. False when the key is taken. */
export async function insertOpening(
  sql: Transaction,
  opening: {
    readonly userId: number;
    readonly idempotencyKey: string;
    readonly order: Order;
    readonly askedLines: readonly AskedLine[];
  },
): Promise<boolean> {
  const { userId, idempotencyKey, order, askedLines } = opening;
  const asked = askedLines.some((line) => "itemId" in line) ? sql.json([...askedLines]) : null;
  const inserted = await sql`
    insert into order_openings (user_id, idempotency_key, order_id, opened, asked_lines)
    values (${userId}, ${idempotencyKey}, ${order.orderId}, ${sql.json(order)}, ${asked})
    on conflict (user_id, idempotency_key) do nothing`;
  return inserted.count === 1;
}

/** The order as it was opened under this key, and the lines that were asked for; undefined when there is none. */
export async function findOpening(
  database: Database,
  key: { readonly userId: number; readonly idempotencyKey: string },
): Promise<{ readonly order: Order; readonly askedLines: readonly AskedLine[] } | undefined> {
  const [row] = await database<{ opened: Order; asked_lines: AskedLine[] | null }[]>`
    select opened, asked_lines from order_openings
    where user_id = ${key.userId} and idempotency_key = ${key.idempotencyKey}`;
  return row && { order: row.opened, askedLines: row.asked_lines ?? row.opened.lines };
}

/** Removes a batch of answers that are past their retention, and returns how many there were. */
export async function removeOpenings(database: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const removed = await database`
    delete from order_openings where (user_id, idempotency_key) in (
      select user_id, idempotency_key from order_openings
      where created_at < now() - make_interval(days => ${olderThanDays})
      order by created_at limit ${rows})`;
  return removed.count;
}

/** These orders of these stations, and each station's newest open order, which comes last. For a bus that has lost data. */
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
