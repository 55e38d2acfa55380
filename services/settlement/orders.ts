/**
 * Orders. Each operation checks the permission and the organization. Opening and changing need a station that is neither
 * suspended nor closed; voiding does not. No write needs a lease: a waiter may write orders while a cashier collects.
 */
import { isDeepStrictEqual } from "node:util";
import type { Actor } from "../../machines/actor.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import type { FieldError } from "../bus/field-errors.ts";
import { flushKeys } from "../bus/flush-outbox.ts";
import type * as announce from "../bus/messages/announce.ts";
import { type Barrier, type Caller, requirePermission } from "../bus/messages/caller.ts";
import type * as orders from "../bus/messages/orders.ts";
import type { Handler, RequestOf } from "../bus/operation.ts";
import { failuresOf } from "../bus/outage.ts";
import { readPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { askStation } from "../bus/station-client.ts";
import { selectLostCollections } from "../db/lost-collections.ts";
import { insertOutbox, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import { type OrderLine, orderTotal } from "./order-total.ts";
import * as sql from "./sql/orders.ts";

type OpenOrder = RequestOf<typeof orders.openOrder>;

/** A concurrent request with the same key was faster. This request returns the order of that one. */
class KeyTakenError extends Error {}

/**
 * Opens an order at a station; with an idempotency key the same request opens it once (I6). Refuses with
 * `permission_denied`, `not_found` (the station), `station_suspended`, `station_closed`, `invalid_request` (an amount that
 * the contract cannot carry) or `idempotency_key_reused`.
 */
export const openOrder: Handler<SettlementDeps, typeof orders.openOrder> = async (deps, request) => {
  requirePermission(request.caller, "payments.collect");
  const order = (await findOpening(deps, request)) ?? (await openNow(deps, request));
  return { order, barrier: await notifyStation(deps, order, request.caller) };
};

async function openNow(deps: SettlementDeps, request: OpenOrder): Promise<orders.Order> {
  try {
    return await deps.database.begin((transaction) => insertNew(transaction, request));
  } catch (error) {
    if (!(error instanceof KeyTakenError)) throw error;
    const earlier = await findOpening(deps, request);
    if (earlier === undefined) throw error;
    return earlier;
  }
}

async function insertNew(transaction: Transaction, request: OpenOrder): Promise<orders.Order> {
  const { caller, stationId, lines, idempotencyKey } = request;
  const { organizationId, userId } = caller;
  const station = await requireOpenStation(transaction, { organizationId, stationId });
  const { currency } = station;
  const ownLines = await resolveLines(transaction, { organizationId, ...station }, lines);
  const totalMinor = orderTotal(ownLines, currency);
  const order = await sql.openOrder(transaction, {
    organizationId,
    stationId,
    currency,
    lines: ownLines,
    totalMinor,
    openedBy: userId,
  });
  if (idempotencyKey !== undefined) {
    const isFirst = await sql.insertOpening(transaction, { userId, idempotencyKey, order, askedLines: lines });
    if (!isFirst) throw new KeyTakenError();
  }
  await insertNotice(transaction, order, actorOf(caller));
  return order;
}

/** The order that the same key opened before. Refuses when the earlier request was a different one. */
async function findOpening(deps: SettlementDeps, request: OpenOrder): Promise<orders.Order | undefined> {
  const { caller, stationId, lines, idempotencyKey } = request;
  if (idempotencyKey === undefined) return undefined;
  const earlier = await sql.findOpening(deps.database, { userId: caller.userId, idempotencyKey });
  if (earlier === undefined) return undefined;
  if (earlier.order.stationId === stationId && isDeepStrictEqual(earlier.askedLines, lines)) return earlier.order;
  throw new RefusedError({ code: "idempotency_key_reused" });
}

/** Refuses with `permission_denied` or `not_found`; an order of another organization is not found. */
export const getOrder: Handler<SettlementDeps, typeof orders.getOrder> = async (deps, { caller, orderId }) => {
  requirePermission(caller, "payments.collect", "organization.manage");
  const order = existing(await sql.getOrder(deps.database, { organizationId: caller.organizationId, orderId }));
  return { order };
};

/** Newest first. Empty for an unknown station and for a station of another organization. Refuses with `permission_denied`. */
export const listOrders: Handler<SettlementDeps, typeof orders.listOrders> = async (deps, request) => {
  const { caller, stationId, status, beforeId, limit } = request;
  const { organizationId } = requirePermission(caller, "payments.collect", "organization.manage");
  const { page, hasMore } = await readPage<orders.Order>(limit, (last, count) =>
    sql.listOrders(deps.database, {
      organizationId,
      stationId,
      status,
      beforeId: last?.orderId ?? beforeId,
      limit: count,
    }),
  );
  return { orders: page, hasMore };
};

/**
 * Replaces the lines, also during a collection of the order: with another total the payment seam refuses to settle that
 * collection. The same lines again change nothing, so a repetition is harmless. Refuses with `permission_denied`,
 * `not_found`, `conflict` (paid or voided), `station_suspended`, `station_closed` or `invalid_request`.
 */
export const changeOrder: Handler<SettlementDeps, typeof orders.changeOrder> = async (deps, request) => {
  const { caller, orderId, lines } = request;
  const { organizationId } = requirePermission(caller, "payments.collect");
  const order = await deps.database.begin(async (transaction) => {
    const before = existing(await sql.lockOrder(transaction, { organizationId, orderId }));
    if (before.status !== "open") throw closedOrder(before);
    if (isDeepStrictEqual(before.lines, lines)) return before;
    const station = await requireOpenStation(transaction, { organizationId, stationId: before.stationId });
    const ownLines = await resolveLines(transaction, { organizationId, ...station }, lines);
    if (isDeepStrictEqual(before.lines, ownLines)) return before;
    const totalMinor = orderTotal(ownLines, before.currency);
    const changed = await sql.changeOrder(transaction, before, { lines: ownLines, totalMinor });
    await insertNotice(transaction, changed, actorOf(caller));
    return changed;
  });
  return { order, barrier: await notifyStation(deps, order, caller) };
};

/**
 * Voids the order, also at a suspended or closed station, so that no order stays open there. A repetition changes nothing.
 * Refuses with `permission_denied`, `not_found` or `conflict` (paid).
 */
export const voidOrder: Handler<SettlementDeps, typeof orders.voidOrder> = async (deps, { caller, orderId }) => {
  requirePermission(caller, "payments.collect");
  const order = await deps.database.begin(async (transaction) => {
    const before = existing(await sql.lockOrder(transaction, { organizationId: caller.organizationId, orderId }));
    if (before.status === "voided") return before;
    if (before.status === "paid") throw closedOrder(before);
    const voided = await sql.voidOrder(transaction, before);
    await insertNotice(transaction, voided, actorOf(caller));
    return voided;
  });
  return { order, barrier: await notifyStation(deps, order, caller) };
};

function closedOrder(order: orders.Order): RefusedError {
  const detail = order.status === "paid" ? "This order is paid." : "This order is voided.";
  return new RefusedError({ code: "conflict", detail });
}

/** Throws `not_found`, `station_suspended` or `station_closed`: such a station opens and changes no order. */
async function requireOpenStation(
  transaction: Transaction,
  key: { readonly organizationId: number; readonly stationId: number },
): Promise<sql.OrderStation> {
  const station = existing(await sql.findStation(transaction, key));
  if (station.status === "suspended") throw new RefusedError({ code: "station_suspended" });
  if (station.status === "closed") throw new RefusedError({ code: "station_closed" });
  return station;
}

/**
 * The lines with the current names and prices of their items, which the order keeps. Throws `invalid_request` with a
 * pointer to each item that the station does not sell.
 */
async function resolveLines(
  transaction: Transaction,
  station: sql.OrderStation & { readonly organizationId: number },
  lines: readonly orders.AskedLine[],
): Promise<OrderLine[]> {
  const itemIds = lines.flatMap((line) => ("itemId" in line ? [line.itemId] : []));
  const items = itemIds.length === 0 ? new Map() : await sql.selectItems(transaction, { ...station, itemIds });
  const errors: FieldError[] = [];
  const resolved = lines.map((line, index): OrderLine => {
    if (!("itemId" in line)) return line;
    const { itemId, quantity } = line;
    const item = items.get(itemId);
    if (item === undefined) {
      const detail = "This item is not in the station's catalogue; read the catalogue again.";
      errors.push({ pointer: `/lines/${index}/item_id`, code: "not_in_catalogue", detail });
    }
    return { name: item?.name ?? "", quantity, unitAmountMinor: item?.unitAmountMinor ?? "0" };
  });
  if (errors.length > 0) throw new RefusedError({ code: "invalid_request", errors });
  return resolved;
}

/** The caller as the station log names it. */
function actorOf(caller: Caller): Actor {
  return caller.role === "owner"
    ? { kind: "owner", id: caller.userId }
    : { kind: "cashier", id: caller.userId, name: caller.name };
}

/** Writes the outbox row from which the relay notifies the station. Like every outbox row, it comes last in its transaction. */
async function insertNotice(transaction: Transaction, order: orders.Order, actor: Actor): Promise<void> {
  const { stationId } = order;
  await insertOutbox(transaction, {
    key: stationKey(stationId),
    kind: "station_command",
    stationId,
    command: orderPut(order),
    actor,
  });
}

function orderPut(order: orders.Order): Extract<StationCommand, { readonly type: "order_put" }> {
  const { orderId, orderDisplayNumber, totalMinor: amountMinor, currency, status, revision } = order;
  return { type: "order_put", order: { orderId, orderDisplayNumber, amountMinor, currency, status, revision } };
}

/**
 * Asks the relay once to deliver the row now, so that callers read what they wrote, and waits for a bounded time. Where no relay
 * delivers in time, this service notifies the station, so that no display shows an order that is gone. Where that fails, too, the
 * barrier shows it. The relay delivers the row in any case, which changes nothing at a station that knows the revision.
 */
async function notifyStation(deps: SettlementDeps, order: orders.Order, caller: Caller): Promise<Barrier> {
  const { bus, log } = deps;
  const { flushTimeoutMs: timeoutMs } = SETTLEMENT_LIMITS;
  const barrier = await flushKeys({ nc: bus.nc, log, timeoutMs }, [stationKey(order.stationId)]);
  if (barrier.isUndelivered !== true) return barrier;
  try {
    return (await notifyWithoutRelay(deps, order, caller)) ?? barrier;
  } catch (error) {
    failuresOf(log, "the station gets an order from the relay").failed(error, { stationId: order.stationId });
    return barrier;
  }
}

/** Sends the order as it is now: what a repeated opening returns may be older. Undefined when the station refuses it. */
async function notifyWithoutRelay(
  { bus, logs, database }: SettlementDeps,
  { orderId, stationId }: orders.Order,
  caller: Caller,
): Promise<Barrier | undefined> {
  const order = await sql.getOrder(database, { organizationId: caller.organizationId, orderId });
  if (order === undefined) return undefined;
  const request = {
    commandId: `order:${orderId}:${order.revision}`,
    actor: actorOf(caller),
    command: orderPut(order),
  };
  const { reply, sequence } = await askStation(bus.nc, stationId, request, {
    timeoutMs: SETTLEMENT_LIMITS.notifyTimeoutMs,
  });
  return reply.ok ? { positions: { [logs.of(stationId).name]: sequence } } : undefined;
}

/**
 * The state of each station's orders, and of the intents that it has not ended, from the database. The relay requests it
 * when the bus has lost its newest data.
 */
export const announceOrders: Handler<Pick<SettlementDeps, "database">, typeof announce.announceOrders> = async (
  { database },
  { stations },
) => {
  const stationIds = stations.map(({ stationId }) => stationId);
  const [believed, sales, lost] = await Promise.all([
    sql.selectBelievedOrders(database, { stationIds, orderIds: stations.flatMap(({ orderIds }) => orderIds) }),
    sql.selectSales(database, { stationIds, intentIds: stations.flatMap(({ intentIds }) => intentIds) }),
    selectLostCollections(database, stations),
  ]);
  const ordersOf = Map.groupBy(believed, ({ stationId }) => stationId);
  const salesOf = Map.groupBy(sales, ({ stationId }) => stationId);
  return {
    stations: stationIds.map((stationId) => ({
      stationId,
      orders: (ordersOf.get(stationId) ?? []).map(({ order }) => order),
      sales: (salesOf.get(stationId) ?? []).map(({ sale }) => sale),
      lost: lost.get(stationId) ?? null,
    })),
  };
};
