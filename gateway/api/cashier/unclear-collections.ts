/** Collections that may have moved money without settling: the reason of each, and the list of a station. */
import { z } from "zod";
import { isEnded, UNCLEAR_REASONS, type UnclearReason } from "../../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import type { StationState } from "../../../machines/station/state.ts";
import { strongestUnclear, unclearReason } from "../../../machines/station/unclear-collections.ts";
import { idSchema } from "../../http/shared-schemas.ts";

/** The meaning of each reason for a cashier. A missing one does not compile. */
const REASON_MEANINGS: Readonly<Record<UnclearReason, string>> = {
  outcome_unknown: "a device reported that it does not know the outcome",
  success_reported: "a device reported a success",
  qr_presented: "its QR was shown and it ended unpaid",
  provider_confirmed: "the provider confirmed the payment, and the service could not settle it",
  late_evidence:
    "after the collection's end, or while the collection was blocked, a device reported that it does not know the outcome",
  late_success: "after the collection's end, or while the collection was blocked, a device reported a success",
  late_money: "the provider reported the payment after the collection's end",
  money_differs:
    "the provider reports a payment of another amount, currency, account or reference; it pays nothing and is an issue, which the timeline names, and the QR is shown no longer. End the collection; the next one of this order asks for confirmation",
  handoff_presented:
    "a device fetched it and reported nothing, and it ended unpaid; a late report of a decline or of a cancellation takes this away, any other one takes its place",
};
export const REASON_DESCRIPTION = [
  "Why money may have moved without a settlement; empty without such a reason. The reason stays when another collection pays the order: then the guest may have paid twice. A collection that has left its station's state keeps it too, and later evidence counts as before; the service then reads it from the audit log, which may be a moment behind.",
  ...Object.entries(REASON_MEANINGS).map(([reason, meaning]) => `\`${reason}\`: ${meaning}.`),
  "A collection that was active when the station's log was lost counts as fetched or shown, and as `outcome_unknown` when cash or a terminal's slip was being settled.",
].join(" ");

export const unclearReasonSchema = z.enum(UNCLEAR_REASONS).meta({
  id: "MoneyMayHaveMovedReason",
  description: "Why the money of an earlier collection may have moved; `MoneyMayHaveMoved` explains the words.",
});

/** An ended collection that may have moved money without settling. */
export const unclearCollectionSchema = z
  .object({ intent_id: idSchema, order_id: idSchema, reason: unclearReasonSchema })
  .meta({ id: "UnclearCollection" });
export const UNCLEAR_DESCRIPTION = [
  "Ended collections that may have moved money without settling, the newest first, also of an order that another collection has paid: there the guest may have been charged twice, and `late_success` or `late_money` says that a payment was reported. A person must check, and refund where a refund is due.",
  `Listed are those of the station's last ${STATE_LIMITS.endedIntents} collections (fewer where reports are long), those that ask for a confirmation before their order is collected again, and ${STATE_LIMITS.olderReasons} older ones. Of the older ones the weakest reasons leave the list first, and among equal ones the oldest: a reported payment stays until ${STATE_LIMITS.olderReasons} newer ones of the same weight have come, because nothing marks it as dealt with.`,
  "A collection that is not listed any more still has its reason in `money_may_have_moved`, and its timeline has all evidence, late reports too.",
].join(" ");

export type UnclearCollection = z.infer<typeof unclearCollectionSchema>;

/** Newest first: the collections in the state, then those that have left the state but whose reason the station has. */
export function unclearCollections(
  station: Pick<StationState, "ended" | "unclearCollections" | "olderReasons">,
): readonly UnclearCollection[] {
  const recent = station.ended.flatMap((intent) => {
    const reason = isEnded(intent.status) ? unclearReason(intent, station) : "";
    return reason === "" ? [] : [{ intent_id: intent.intentId, order_id: intent.orderId, reason }];
  });
  const known = new Set(station.ended.map(({ intentId }) => intentId));
  const older = [...station.unclearCollections, ...station.olderReasons].filter(({ intentId }) => !known.has(intentId));
  const olderIds = [...new Set(older.map(({ intentId }) => intentId))].toSorted((a, b) => b - a);
  const others = olderIds.flatMap((id) => {
    const strongest = strongestUnclear(older.filter(({ intentId }) => intentId === id));
    return strongest === undefined ? [] : [{ intent_id: id, order_id: strongest.orderId, reason: strongest.reason }];
  });
  return [...recent, ...others];
}
