/** The payment seam in PostgreSQL: the SQL function `settle_intent` alone writes transactions. */

import type { EarlierSale } from "../../../machines/payment-intent.ts";
import type { SettlementRefusal } from "../../../machines/station/reply.ts";
import type * as intents from "../../bus/messages/intents.ts";
import type { RequestOf } from "../../bus/operation.ts";
import type { Database } from "../../db/pool.ts";
import { keyText, storedText } from "../../db/stored-text.ts";

/** The reference of a slip, as the payment seam compares it. */
export interface ComparedReference {
  readonly key: string;
  /** How far back it is compared; undefined means without a limit. */
  readonly withinHours: number | undefined;
}

type SeamAnswer =
  | { readonly settledAs: number }
  /** `usedBy` is the transaction that has used the reference before. */
  | { readonly refusal: SettlementRefusal; readonly usedBy: number | null };

/**
 * Settles an intent against its order, or returns why not: one round trip, one transaction. The rules are in the
 * function `settle_intent` (services/db/schema.sql), which alone writes `transactions`.
 */
export async function settleIntent(
  database: Database,
  intent: RequestOf<typeof intents.settleIntent>,
  compared: ComparedReference | undefined,
): Promise<SeamAnswer> {
  const [row] = await database<
    { settled_as: number | null; refusal: SettlementRefusal | null; reference_used_by: number | null }[]
  >`
    select settled_as, refusal, reference_used_by from settle_intent(
      ${intent.intentId}, ${keyText(intent.attestationId)}, ${intent.stationId}, ${intent.orderId}, ${intent.route},
      ${intent.amountMinor}, ${intent.currency}, ${storedText(intent.reference)}, ${intent.attestedBy},
      ${intent.moneyKey ?? null}, ${compared?.key ?? null}, make_interval(hours => ${compared?.withinHours ?? null}),
      ${intent.confirmsReferenceAlreadyUsed ?? false})`;
  if (row?.settled_as) return { settledAs: row.settled_as };
  if (row?.refusal) return { refusal: row.refusal, usedBy: row.reference_used_by };
  throw new Error("The payment seam answered neither a transaction nor a refusal.");
}

/** The order that a transaction has settled, for the cashier who is about to use its reference again. */
export async function findEarlierSale(database: Database, transactionId: number): Promise<EarlierSale | undefined> {
  const [row] = await database<
    {
      order_id: number;
      display_number: number;
      station_name: string;
      amount_minor: string;
      currency: string;
      settled_at_ms: number;
    }[]
  >`
    select t.order_id, o.display_number, s.name as station_name, t.amount_minor::text as amount_minor, t.currency,
           floor(extract(epoch from t.settled_at) * 1000)::bigint as settled_at_ms
    from transactions t join orders o using (order_id) join stations s on s.station_id = t.station_id
    where t.transaction_id = ${transactionId}`;
  return (
    row && {
      orderId: row.order_id,
      orderDisplayNumber: row.display_number,
      stationName: row.station_name,
      amountMinor: row.amount_minor,
      currency: row.currency,
      settledAtMs: row.settled_at_ms,
    }
  );
}
