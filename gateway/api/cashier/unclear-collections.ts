/** Collections that may have moved money without settling: the reason of each, and the list of a station. */
import { z } from "zod";
import { isEnded, type PaymentIntent, UNCLEAR_REASONS, type UnclearReason } from "../../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import type { StationState } from "../../../machines/station/state.ts";
import { strongestUnclear, unclearReason } from "../../../machines/station/unclear-collections.ts";
import { idSchema } from "../../http/shared-schemas.ts";

/** The meaning of each reason for a cashier. A missing one does not compile. */
const REASON_MEANINGS: Readonly<Record<UnclearReason, string>> = {
  outcome_unknown:
    "a device reported that it does not know the outcome, or the cashier attested a payment by card and the service refused to settle it",
  success_reported: "a device reported a success",
  qr_presented: "its QR was shown and it ended unpaid",
  provider_confirmed: "the provider confirmed the payment, and the service could not settle it",
  late_evidence:
    "after the collection's end, or while the device was blocked, a device reported that it does not know the outcome",
  late_success: "after the collection's end, or while the device was blocked, a device reported a success",
  late_money: "the provider reported the payment after the collection's end",
  money_differs:
    "the provider reports a payment with another amount, currency, account or reference. It pays nothing and is an issue, which the timeline names; the QR is no longer shown. End the collection; the next collection of this order needs a confirmation",
  handoff_presented:
    "a device fetched the collection and reported nothing, and it ended unpaid. A late report of a decline or of a cancellation removes this reason; any other late report replaces it",
};
export const REASON_DESCRIPTION = [
  "Why money may have moved without a settlement; empty without such a reason. The reason stays when another collection pays the order: then the guest may have paid twice. The reason also stays when the collection has left its station's state, and later evidence counts as before. The service then reads the reason from the audit log, which may be a moment behind.",
  ...Object.entries(REASON_MEANINGS).map(([reason, meaning]) => `\`${reason}\`: ${meaning}.`),
  "When a station's log was lost, a collection that was active at that time counts as fetched or shown; if cash or a terminal's slip was being settled, it counts as `outcome_unknown`.",
].join(" ");

export const unclearReasonSchema = z.enum(UNCLEAR_REASONS).meta({
  id: "MoneyMayHaveMovedReason",
  description: "Why the money of an earlier collection may have moved; `MoneyMayHaveMoved` explains the words.",
});

/** An ended collection that may have moved money without settling. */
export const unclearCollectionSchema = z
  .object({
    intent_id: idSchema,
    order_id: idSchema,
    order_display_number: z
      .int()
      .nullable()
      .meta({ description: "Null when the collection has left its station's state." }),
    reason: unclearReasonSchema,
  })
  .meta({ id: "UnclearCollection" });
export const UNCLEAR_DESCRIPTION = [
  "Ended collections that may have moved money without settling, the newest first. If another collection has paid the order, the guest may have paid twice; `late_success` or `late_money` means that a payment was reported. A person must check this and make a refund where one is due. The list keeps a payment that an operator has attributed to an order or paid back, so read its issue before a refund.",
  `The list has those of the station's last ${STATE_LIMITS.endedIntents} collections (fewer where reports are long). It also has those that need a confirmation before their order is collected again, and ${STATE_LIMITS.olderReasons} older ones. Of the older ones, those with the weakest reasons leave the list first, and among equal reasons the oldest. A reported payment stays until ${STATE_LIMITS.olderReasons} newer ones with an equal reason have come, because nothing marks it as resolved.`,
  "A collection that has left the list still has its reason in `money_may_have_moved`, and its timeline has all evidence, including late reports.",
].join(" ");

export type UnclearCollection = z.infer<typeof unclearCollectionSchema>;

/** Newest first: the collections in the state, then those that have left the state but whose reason the station has. */
export function unclearCollections(
  station: Pick<StationState, "ended" | "unclearCollections" | "olderReasons">,
): readonly UnclearCollection[] {
  const recent = station.ended.flatMap((intent) => {
    const reason = isEnded(intent.status) ? unclearReason(intent, station) : "";
    return reason === "" ? [] : [unclearJson(intent, intent.orderDisplayNumber, reason)];
  });
  const known = new Set(station.ended.map(({ intentId }) => intentId));
  const older = [...station.unclearCollections, ...station.olderReasons].filter(({ intentId }) => !known.has(intentId));
  const olderIds = [...new Set(older.map(({ intentId }) => intentId))].toSorted((a, b) => b - a);
  const others = olderIds.flatMap((id) => {
    const strongest = strongestUnclear(older.filter(({ intentId }) => intentId === id));
    return strongest === undefined ? [] : [unclearJson(strongest, null, strongest.reason)];
  });
  return [...recent, ...others];
}

function unclearJson(
  { intentId, orderId }: Pick<PaymentIntent, "intentId" | "orderId">,
  orderDisplayNumber: number | null,
  reason: UnclearReason,
): UnclearCollection {
  return { intent_id: intentId, order_id: orderId, order_display_number: orderDisplayNumber, reason };
}
