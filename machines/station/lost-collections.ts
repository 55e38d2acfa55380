/**
 * The part of a station's state about collections that may have moved money. The audit copy keeps this part of each station's
 * newest commit. When the log loses the commit, the relay returns the part to the station by `station_put`.
 */
import type { PaymentIntent, UnclearReason } from "../payment-intent.ts";
import type { StationEvent } from "./event.ts";
import { moveIntent } from "./intent-move.ts";
import { keepOlderReason } from "./older-reasons.ts";
import { isSilence } from "./reasons.ts";
import { findIntent, type LostCollections, type LostReason, type OlderReason, type StationState } from "./state.ts";
import { addUnclear, nextReasonNumber, reasonAtEnd } from "./unclear-collections.ts";

/** The part that this station must get back when its log loses the commit of this state. */
export function collectionsOf(state: StationState): LostCollections {
  const { intent, ended, olderReasons, unclearCollections, unclearForgottenThrough, nextIntentNumber } = state;
  const { lastReasonNumber } = state;
  const active = intent === null ? [] : activeReason(intent);
  const unclear = unclearCollections.map(({ orderId, intentId, reason, reasonNumber }) => ({
    orderId,
    intentId,
    reason,
    reasonNumber,
  }));
  const own = ended.flatMap(({ orderId, intentId, reasonSinceEnd: reason }) =>
    reason === "" ? [] : [{ orderId, intentId, reason }],
  );
  return {
    unclear: [...unclear, ...active],
    reasons: [...olderReasons, ...own.toReversed(), ...active],
    unclearThrough: unclearForgottenThrough,
    nextIntentNumber,
    ...(lastReasonNumber === undefined ? {} : { lastReasonNumber }),
  };
}

function activeReason(intent: PaymentIntent): readonly LostReason[] {
  const { orderId, intentId } = intent;
  const reason = reasonWhenLost(intent);
  if (reason === undefined) return [];
  return [{ orderId, intentId, reason, ...(reasonAtEnd(intent, "") === undefined && { isAssumed: true as const }) }];
}

/**
 * Why money may have moved for an active intent that the log loses. The events after its last known commit are unknown: a device
 * may have fetched the intent, a display may have shown its QR, and a host may have asked the payment seam.
 */
export function reasonWhenLost(intent: PaymentIntent): UnclearReason | undefined {
  const known = reasonAtEnd(intent, "");
  if (known !== undefined) return known;
  if (intent.route === "dynamic_qr") return "qr_presented";
  if (intent.status === "settling") return "outcome_unknown";
  return intent.route === "smart_pos" ? "handoff_presented" : undefined;
}

/** The station with the lost part, and the event about it. No event when the station already has everything. */
export function restoreCollections(
  state: StationState,
  lost: LostCollections,
  atMs: number,
): { readonly state: StationState; readonly events: readonly StationEvent[] } {
  const hasForgotten = lost.unclearThrough > state.unclearForgottenThrough;
  const lastReasonNumber = Math.max(state.lastReasonNumber ?? 0, lost.lastReasonNumber ?? 0);
  const known: StationState = lastReasonNumber === 0 ? state : { ...state, lastReasonNumber };
  const numbered: StationState = {
    ...known,
    nextIntentNumber: Math.max(state.nextIntentNumber, lost.nextIntentNumber),
    ...(hasForgotten && {
      unclearForgottenThrough: lost.unclearThrough,
      lastReasonNumber: nextReasonNumber(known, atMs),
    }),
  };
  const restored = new Map<string, OlderReason>();
  let next = numbered;
  const apply = (restoreOne: (before: StationState, lost: LostReason) => StationState, all: readonly LostReason[]) => {
    for (const one of all) {
      const before = next;
      next = restoreOne(before, one);
      const { orderId, intentId, reason } = one;
      if (next !== before) restored.set(`${intentId} ${reason}`, { orderId, intentId, reason });
    }
  };
  apply(restoreReason, lost.reasons);
  apply((before, one) => restoreUnclear(before, one, atMs), lost.unclear);
  const { unclearForgottenThrough: unclearThrough, nextIntentNumber } = next;
  const isSame =
    restored.size === 0 &&
    next.lastReasonNumber === state.lastReasonNumber &&
    unclearThrough === state.unclearForgottenThrough &&
    nextIntentNumber === state.nextIntentNumber;
  if (isSame) return { state, events: [] };
  const reasons = [...restored.values()];
  return { state: next, events: [{ type: "collections_restored", reasons, unclearThrough, nextIntentNumber }] };
}

/**
 * Restores one reason of a collection that has ended: in the intent if the state still has it, or else among `olderReasons`. It
 * replaces a silence, which a late report ends.
 */
function restoreReason(state: StationState, { orderId, intentId, reason, isAssumed }: LostReason): StationState {
  const intent = findIntent(state, intentId);
  if (intent === undefined) {
    const isKnown = state.olderReasons.some((older) => older.intentId === intentId);
    return isKnown ? state : keepOlderReason(state, { orderId, intentId, reasonSinceEnd: "" }, reason);
  }
  const isUnpaid = intent.status === "cancelled" || intent.status === "expired";
  const { reasonSinceEnd: own } = intent;
  const isKept = own !== "" && !(isSilence(own) && !isSilence(reason));
  if (!isUnpaid || isKept || isAssumed === true) return state;
  const ended = state.ended.map((other) => (other === intent ? { ...other, reasonSinceEnd: reason } : other));
  return { ...state, ended };
}

function restoreUnclear(
  state: StationState,
  { orderId, intentId, reason, isAssumed, reasonNumber = 0 }: LostReason,
  atMs: number,
): StationState {
  const intent = findIntent(state, intentId);
  if (intent?.status === "succeeded" || (intent !== undefined && isAssumed === true)) return state;
  if (intent !== undefined && intent === state.intent) {
    if (reasonAtEnd(intent, "") !== undefined) return state;
    return moveIntent(state, { type: "MARK", reason }) ?? state;
  }
  const ofIntent = state.unclearCollections.filter((other) => other.intentId === intentId);
  const same = ofIntent.find((other) => other.reason === reason);
  const isNewPayment = same !== undefined && same.reasonNumber < reasonNumber;
  const isKnown = same !== undefined || (isSilence(reason) && ofIntent.length > 0);
  return isKnown && !isNewPayment ? state : addUnclear(state, { orderId, intentId }, { reason, atMs, isNewPayment });
}
