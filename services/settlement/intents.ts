/** What a station asks of its intents' records: an id for a new one, and how an old one ended. */
import { isEnded, type PaymentIntent } from "../../machines/payment-intent.ts";
import type * as intents from "../bus/messages/intents.ts";
import type { Handler, ReplyOf } from "../bus/operation.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { findCopiedIntent, readIntent } from "../db/intent-history.ts";
import type { Database } from "../db/pool.ts";
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import * as sql from "./sql/intents.ts";

/**
 * Order truth for a new intent, and its id. Refuses with `not_found` for an order that is not the station's, and with
 * `idempotency_key_reused` for another order under the same key.
 */
export const prepareIntent: Handler<SettlementDeps, typeof intents.prepareIntent> = async (deps, request) => {
  for (let attempt = 0; attempt < SETTLEMENT_LIMITS.keyReadAttempts; attempt += 1) {
    const { intentId, keyedOrderId, ended, ...found } = await sql.prepareIntent(deps.database, request);
    if (keyedOrderId !== request.orderId) throw new RefusedError({ code: "idempotency_key_reused" });
    const order = existing(found.order);
    // Where the id is missing, another request has just written the same key: the next read sees it.
    if (intentId !== undefined) return { intentId, ended: ended === null ? null : { ...readIntent(ended) }, order };
  }
  throw new Error("An idempotency key was neither written nor read.");
};

/**
 * How a station's intent ended. The audit copy has what the log lost, what is past the retention of records, and late
 * evidence of an ended intent; where the copy is behind, the station's own record counts. Refuses with `unavailable` while
 * neither has the end.
 */
export const findEndedIntent: Handler<Pick<SettlementDeps, "database">, typeof intents.findEndedIntent> = async (
  { database },
  key,
) => {
  const copied = await findCopiedIntent(database, key);
  if (copied !== undefined && isEnded(copied.intent.status)) return await withOrder(database, copied.intent);
  const ended = await sql.findEndedIntent(database, key);
  if (ended !== undefined) return await withOrder(database, readIntent(ended));
  if (copied === undefined) return { intent: null, orderStatus: null };
  // The log has lost the intent, and the station has sent no end: the copy will show this soon.
  throw new RefusedError({ code: "unavailable", retryAfterMs: SETTLEMENT_LIMITS.copyRetryMs });
};

async function withOrder(database: Database, intent: PaymentIntent): Promise<ReplyOf<typeof intents.findEndedIntent>> {
  return { intent: { ...intent }, orderStatus: (await sql.findOrderStatus(database, intent.orderId)) ?? null };
}
