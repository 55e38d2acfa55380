/** The replies of a station. A stored reply is compact: `render-reply.ts` adds the intent. */
import type { LeaseHolder, LostLease } from "../lease.ts";
import type { EarlierSale, IntentState, IntentStatus, Report, UnclearReason } from "../payment-intent.ts";
import { BLOCKED_REASONS } from "../standing.ts";

/** Why the payment seam refuses to settle: the order has changed, or the payment has settled another order. */
export const SETTLEMENT_REFUSALS = [
  "order_changed",
  "order_already_paid",
  "order_voided",
  "order_unknown",
  "money_already_used",
  "reference_already_used",
] as const;
export type SettlementRefusal = (typeof SETTLEMENT_REFUSALS)[number];

/** Every code with which a station refuses. The gateway has a status and a sentence for each. */
export const REFUSAL_CODES = [
  "station_unknown",
  "device_unknown",
  "device_limit_reached",
  "station_leased",
  "lease_required",
  "session_ended",
  "route_not_offered",
  "collection_active",
  "money_may_have_moved",
  "amount_not_collectable",
  "handoff_not_assigned",
  "intent_unknown",
  "intent_not_actionable",
  "evidence_required",
  "reference_required",
  "settlement_in_progress",
  /** An earlier command had the same idempotency key and another body. */
  "idempotency_key_reused",
  ...SETTLEMENT_REFUSALS,
  ...BLOCKED_REASONS,
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** Why a route is not offered to the cashier now. */
export const WITHDRAWAL_REASONS = [
  ...BLOCKED_REASONS,
  "no_companion",
  "device_offline",
  "device_not_enrolled",
  "capability_missing",
  "provider_not_configured",
  "provider_frozen",
] as const;
export type WithdrawalReason = (typeof WITHDRAWAL_REASONS)[number];

export interface Refusal {
  readonly ok: false;
  readonly code: RefusalCode;
  /** The intent's status, when the refusal is about an intent (contract, "Errors"). */
  readonly status?: IntentStatus;
  /** For `route_not_offered`: why. For `money_may_have_moved`: the strongest reason, if the station still has it. */
  readonly reason?: WithdrawalReason | UnclearReason;
  /** For `station_leased`: who holds the lease. */
  readonly holder?: string;
  /** For `money_may_have_moved`: the collection to which `reason` belongs. */
  readonly earlierIntentId?: number;
  /** For `money_may_have_moved`: a confirmation with this number covers every reason that the station knows now. */
  readonly reasonNumber?: number;
  /** For `reference_already_used`: the order that the same reference has settled. */
  readonly earlierSale?: EarlierSale;
}

export type StationReply =
  | { readonly ok: true; readonly type: "accepted" }
  | {
      readonly ok: true;
      readonly type: "lease";
      readonly lease: LeaseHolder | null;
      readonly lostLease: LostLease | null;
    }
  | { readonly ok: true; readonly type: "intent"; readonly intentId: number; readonly status: IntentState }
  | { readonly ok: true; readonly type: "report"; readonly intentId: number; readonly report: Report }
  | Refusal;
