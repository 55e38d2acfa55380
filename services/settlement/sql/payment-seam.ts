/** What the payment seam asks of the database. */
import type { SettlementRefusal } from "../../../machines/station/command.ts";
import type { OrderSnapshot } from "../../../machines/station/state.ts";
import type { settle } from "../../bus/messages/settlement.ts";
import type { RequestOf } from "../../bus/operation.ts";
import type { Database } from "../../db/pool.ts";

/**
 * Settles an intent against its order, or says why not: one round trip, one transaction. The rules stand in the
 * function `settle_intent` (migration 0023), which alone writes `transactions`.
 */
export async function settleIntent(
  database: Database,
  intent: RequestOf<typeof settle>,
): Promise<{ readonly settledAs: number } | { readonly refusal: SettlementRefusal }> {
  const [row] = await database<{ settled_as: number | null; refusal: SettlementRefusal | null }[]>`
    select settled_as, refusal from settle_intent(
      ${intent.intentId}, ${keyText(intent.attestationId)}, ${intent.stationId}, ${intent.orderId}, ${intent.route},
      ${intent.amountMinor}, ${intent.currency}, ${intent.reference}, ${intent.attestedBy},
      ${intent.moneyKey ?? null})`;
  if (row?.settled_as) return { settledAs: row.settled_as };
  if (row?.refusal) return { refusal: row.refusal };
  throw new Error("The payment seam answered neither a transaction nor a refusal.");
}

/** A key for a text column: JSON's escapes keep every two different keys different, whatever they hold. */
function keyText(key: string): string {
  return JSON.stringify(key).slice(1, -1);
}

/** A fresh intent id with the order's truth at this moment, or undefined when the station has no such order. */
export async function drawIntent(
  database: Database,
  key: { readonly stationId: number; readonly orderId: number },
): Promise<{ readonly intentId: number; readonly order: OrderSnapshot } | undefined> {
  const [row] = await database<
    {
      intent_id: number;
      display_number: number;
      amount_minor: string;
      currency: string;
      status: OrderSnapshot["status"];
      revision: number;
    }[]
  >`
    select nextval('intent_ids') as intent_id, display_number, total_minor::text as amount_minor, currency, status, revision
    from orders where station_id = ${key.stationId} and order_id = ${key.orderId}`;
  if (row === undefined) return undefined;
  return {
    intentId: row.intent_id,
    order: {
      orderId: key.orderId,
      orderDisplayNumber: row.display_number,
      amountMinor: row.amount_minor,
      currency: row.currency,
      status: row.status,
      revision: row.revision,
    },
  };
}
