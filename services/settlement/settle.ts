/** The payment seam as the actor host sees it (design §2.4). */
import type { settleIntent as settleOperation } from "../bus/messages/intents.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import type { SettlementDeps } from "./deps.ts";
import { storableText } from "./order-total.ts";
import { comparedReference } from "./reference-key.ts";
import { findEarlierSale, settleIntent } from "./sql/payment-seam.ts";

/** Settles once, however often and by however many it is asked. One wide log line tells each outcome. */
export async function settleOnce(
  deps: SettlementDeps,
  request: RequestOf<typeof settleOperation>,
): Promise<ReplyOf<typeof settleOperation>> {
  // Whatever a provider's money is called, it must not keep a settlement from ending.
  const storable = request.moneyKey === undefined ? request : { ...request, moneyKey: storableText(request.moneyKey) };
  const outcome = await settleIntent(deps.database, storable, comparedReference(request.route, request.reference));
  const { intentId, attestationId, stationId, orderId, route, amountMinor, currency, moneyKey } = request;
  const asked = { intentId, attestationId, stationId, orderId, route, amountMinor, currency, moneyKey };
  deps.log.info({ ...asked, ...outcome }, "settlement answered");
  if ("settledAs" in outcome) return { settled: true, transactionId: outcome.settledAs };
  const { refusal: code, usedBy } = outcome;
  const earlier = usedBy === null ? undefined : await findEarlierSale(deps.database, usedBy);
  return earlier === undefined ? { settled: false, code } : { settled: false, code, earlier };
}
