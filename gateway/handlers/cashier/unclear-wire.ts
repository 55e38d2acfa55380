/** The ended collections that may have moved money without settling, as their station has them. */
import type { z } from "zod";
import { isEnded } from "../../../machines/payment-intent.ts";
import { strongestDoubt } from "../../../machines/station/doubts.ts";
import type { StationState } from "../../../machines/station/state.ts";
import type { unclearCollectionSchema } from "../../contract/intent.ts";
import { doubtNow } from "./intent-wire.ts";

export type UnclearCollection = z.infer<typeof unclearCollectionSchema>;

/** Newest first: those in the state, then those that have left it and of which the station has kept a reason. */
export function unclearCollections(
  station: Pick<StationState, "ended" | "doubts" | "olderReasons">,
): readonly UnclearCollection[] {
  const recent = station.ended.flatMap((intent) => {
    const reason = isEnded(intent.status) ? doubtNow(intent, station) : "";
    return reason === "" ? [] : [{ intent_id: intent.intentId, order_id: intent.orderId, reason }];
  });
  const known = new Set(station.ended.map(({ intentId }) => intentId));
  const older = [...station.doubts, ...station.olderReasons].filter(({ intentId }) => !known.has(intentId));
  const olderIds = [...new Set(older.map(({ intentId }) => intentId))].toSorted((a, b) => b - a);
  const others = olderIds.flatMap((id) => {
    const doubt = strongestDoubt(older.filter(({ intentId }) => intentId === id));
    return doubt === undefined ? [] : [{ intent_id: id, order_id: doubt.orderId, reason: doubt.reason }];
  });
  return [...recent, ...others];
}
