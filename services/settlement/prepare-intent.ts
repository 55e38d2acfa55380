/** What a station asks of its intents' records: an id for a new one, and how an old one ended. */
import { isEnded, type PaymentIntent } from "../../machines/payment-intent.ts";
import type { findEndedIntent, prepareIntent } from "../bus/messages/intents.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import { findCopiedIntent, readIntent } from "../db/intent-history.ts";
import type { Database } from "../db/pool.ts";
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import { drawIntent, findEnded, findOrderStatus } from "./sql/intent-records.ts";

/**
 * Order truth for a new intent, and its id. Refuses with `not_found` for an order that is not the station's, and with
 * `idempotency_key_reused` for another order under the same key.
 */
export async function prepare(
  deps: SettlementDeps,
  request: RequestOf<typeof prepareIntent>,
): Promise<ReplyOf<typeof prepareIntent>> {
  for (let attempt = 0; attempt < SETTLEMENT_LIMITS.drawAttempts; attempt += 1) {
    const { intentId, keyedOrderId, ended, order } = await drawIntent(deps.database, request);
    if (keyedOrderId !== request.orderId) throw new RefusedError({ code: "idempotency_key_reused" });
    if (order === undefined) throw new RefusedError({ code: "not_found" });
    // Another request with the same key has written it a moment ago: the next read sees it.
    if (intentId !== undefined) return { intentId, ended: ended === null ? null : { ...readIntent(ended) }, order };
  }
  throw new Error("An idempotency key was neither written nor read.");
}

/**
 * How a station's intent ended. The audit copy knows what the log has lost, what is past the retention of records, and late marks
 * of an ended intent; where it is behind, the record of the station counts. Refuses with `unavailable` while neither knows.
 */
export async function findIntent(
  { database }: SettlementDeps,
  key: RequestOf<typeof findEndedIntent>,
): Promise<ReplyOf<typeof findEndedIntent>> {
  const copied = await findCopiedIntent(database, key);
  if (copied !== undefined && isEnded(copied.intent.status)) return await withOrder(database, copied.intent);
  const ended = await findEnded(database, key);
  if (ended !== undefined) return await withOrder(database, readIntent(ended));
  if (copied === undefined) return { intent: null, orderStatus: null };
  // The station has no such intent and has passed none on: the log has lost it, and the copy is about to say so.
  throw new RefusedError({ code: "unavailable", retryAfterMs: SETTLEMENT_LIMITS.copyRetryMs });
}

async function withOrder(database: Database, intent: PaymentIntent): Promise<ReplyOf<typeof findEndedIntent>> {
  return { intent: { ...intent }, orderStatus: (await findOrderStatus(database, intent.orderId)) ?? null };
}
