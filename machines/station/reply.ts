/** What a station answers. A stored reply is compact; `renderReply` adds the intent it speaks of. */
import type { LeaseHolder, LostLease } from "../lease.ts";
import type {
  DoubtReason,
  EarlierSale,
  IntentState,
  IntentStatus,
  PaymentIntent,
  ProviderPayment,
  Report,
} from "../payment-intent.ts";
import { BLOCKED_REASONS } from "../standing.ts";
import { SETTLEMENT_REFUSALS } from "./command.ts";
import { findIntent, type StationState } from "./state.ts";

/** Every code with which a station refuses. The gateway maps each to a status and a sentence, exhaustively. */
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
  /** The same idempotency key came with another body. */
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
  /** The intent's status, where the refusal is about an intent (contract, "Errors"). */
  readonly status?: IntentStatus;
  /** For `route_not_offered`: why. For `money_may_have_moved`: the strongest reason, while it is remembered. */
  readonly reason?: WithdrawalReason | DoubtReason;
  /** For `station_leased`: who holds the lease. */
  readonly holder?: string;
  /** For `money_may_have_moved`: the collection of the order that `reason` is about. */
  readonly earlierIntentId?: number;
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

/** A reply with the intent that it speaks of, as it was when the reply was given. */
export interface RenderedReply {
  readonly reply: StationReply;
  readonly intent: PaymentIntent | null;
}

/**
 * The full answer to a command, the first time and on each repetition (I6). Returns undefined when the intent has left
 * the state and is not the one that was `recalled`.
 */
export function renderReply(
  state: StationState,
  reply: StationReply,
  recalled?: PaymentIntent,
): RenderedReply | undefined {
  if (!reply.ok || (reply.type !== "intent" && reply.type !== "report")) return { reply, intent: null };
  const { intentId } = reply;
  const intent = findIntent(state, intentId) ?? (recalled?.intentId === intentId ? recalled : undefined);
  if (intent === undefined) return undefined;
  const status = reply.type === "report" ? "processing" : reply.status;
  if (status === intent.status) return { reply, intent };
  return { reply, intent: intentAsOf(intent, status) };
}

/** An intent as it was when it was in an earlier state: what came later is taken off again. */
function intentAsOf(intent: PaymentIntent, status: IntentState): PaymentIntent {
  const fresh = status === "created" || status === "presented";
  return {
    ...intent,
    status,
    presentedAtMs: status === "created" ? null : intent.presentedAtMs,
    reports: fresh ? [] : intent.reports,
    reportCount: fresh ? 0 : intent.reportCount,
    formerReports: fresh ? [] : intent.formerReports,
    attestation: null,
    moneyMayHaveMoved: fresh ? "" : intent.moneyMayHaveMoved,
    reasonSinceEnd: "",
    provider: intent.provider === null ? null : providerAsOf(intent.provider, status),
    endedAtMs: null,
    endReason: "",
    cancelKey: "",
  };
}

function providerAsOf(provider: ProviderPayment, status: IntentState): ProviderPayment {
  if (status === "created")
    return { configId: provider.configId, qrPayload: "", providerReference: "", confirmedAtMs: null };
  return status === "presented" ? { ...provider, confirmedAtMs: null } : provider;
}
