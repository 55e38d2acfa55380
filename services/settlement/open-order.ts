/** Opens an order at a station; with an idempotency key the same request opens it once (I6). */
import { isDeepStrictEqual } from "node:util";
import { BOUNDS } from "../bus/bounds.ts";
import type { Order, openOrder } from "../bus/messages/orders.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { Transaction } from "../db/pool.ts";
import { actorOf, requireCollector, requireOpenStation } from "./access.ts";
import type { SettlementDeps } from "./deps.ts";
import { isStorableText, orderTotal } from "./order-total.ts";
import { findOpening } from "./sql/openings.ts";
import { findStation, insertOpening, insertOrder } from "./sql/write-orders.ts";
import { noteForStation, tellStation } from "./station-notice.ts";

type Request = RequestOf<typeof openOrder>;

/** Another request with the same key was faster; its answer is the answer. */
class KeyTakenError extends Error {}

/**
 * Refuses with `permission_denied`, `not_found` (the station), `station_suspended`, `station_closed`, `invalid_request`
 * (an amount that the contract cannot carry) or `idempotency_key_reused`.
 */
export async function open(deps: SettlementDeps, request: Request): Promise<ReplyOf<typeof openOrder>> {
  requireCollector(request.caller);
  requireUsableKey(request.idempotencyKey);
  const order = (await earlierOpening(deps, request)) ?? (await openNow(deps, request));
  return { order, barrier: await tellStation(deps, order.stationId) };
}

async function openNow(deps: SettlementDeps, request: Request): Promise<Order> {
  try {
    return await deps.database.begin((sql) => write(sql, request));
  } catch (error) {
    if (!(error instanceof KeyTakenError)) throw error;
    const earlier = await earlierOpening(deps, request);
    if (earlier === undefined) throw error;
    return earlier;
  }
}

async function write(sql: Transaction, request: Request): Promise<Order> {
  const { caller, stationId, lines, idempotencyKey } = request;
  const { organizationId } = caller;
  const station = await findStation(sql, { organizationId, stationId });
  if (station === undefined) throw new RefusedError({ code: "not_found" });
  requireOpenStation(station);
  const { currency } = station;
  const total = orderTotal(lines, currency);
  if ("errors" in total) throw new RefusedError({ code: "invalid_request", errors: [...total.errors] });
  const { totalMinor } = total;
  const openedBy = caller.userId;
  const order = await insertOrder(sql, { organizationId, stationId, currency, lines, totalMinor, openedBy });
  if (idempotencyKey !== undefined) {
    const isFirst = await insertOpening(sql, { userId: caller.userId, idempotencyKey, order });
    if (!isFirst) throw new KeyTakenError();
  }
  await noteForStation(sql, order, actorOf(caller));
  return order;
}

/** What the same key opened before. Refuses when that was another request. */
async function earlierOpening(deps: SettlementDeps, request: Request): Promise<Order | undefined> {
  const { caller, stationId, lines, idempotencyKey } = request;
  if (idempotencyKey === undefined) return undefined;
  const earlier = await findOpening(deps.database, { userId: caller.userId, idempotencyKey });
  if (earlier === undefined) return undefined;
  if (earlier.stationId === stationId && isDeepStrictEqual(earlier.lines, lines)) return earlier;
  throw new RefusedError({ code: "idempotency_key_reused" });
}

function requireUsableKey(key: string | undefined): void {
  if (key === undefined) return;
  if (key.length > 0 && key.length <= BOUNDS.idempotencyKeyCharacters && isStorableText(key)) return;
  const detail = `an idempotency key has 1 to ${BOUNDS.idempotencyKeyCharacters} characters`;
  throw new RefusedError({ code: "invalid_request", errors: [{ pointer: "", detail }] });
}
