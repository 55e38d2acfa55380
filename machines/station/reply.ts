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
import { STATE_LIMITS } from "../settings.ts";
import { BLOCKED_REASONS } from "../standing.ts";
import { SETTLEMENT_REFUSALS, type StationCommand } from "./command.ts";
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
  /** Of a stored reply only: a report was answered whose text is too long to be kept here; the audit log has the answer. */
  | { readonly ok: true; readonly type: "elsewhere"; readonly intentId: number }
  | Refusal;

/** A reply with the intent that it speaks of, as it was when the reply was given. */
export interface RenderedReply {
  readonly reply: StationReply;
  readonly intent: PaymentIntent | null;
}

/**
 * The full answer to a command, the first time and on each repetition (I6). Returns undefined when the intent, or the
 * text of a report, has left the state; the audit log still has the answer then.
 */
export function renderReply(state: StationState, reply: StationReply): RenderedReply | undefined {
  if (reply.ok && reply.type === "elsewhere") return undefined;
  if (!reply.ok || (reply.type !== "intent" && reply.type !== "report")) return { reply, intent: null };
  const intent = findIntent(state, reply.intentId);
  if (intent === undefined) return undefined;
  const status = reply.type === "report" ? "processing" : reply.status;
  if (status === intent.status) return { reply, intent };
  return { reply, intent: intentAsOf(intent, status) };
}

/**
 * Whether the reply to a command may have been given and have left the bounded state since, so that only the audit
 * trail can tell a repetition from a new command. Replies leave in the order in which they came: as long as the reply
 * that created an intent is here, every later one about that intent is too.
 */
export function replyMayBeForgotten(state: StationState, commandId: string, command: StationCommand): boolean {
  if (state.replies.length < STATE_LIMITS.replies) return false;
  if (state.replies.some((stored) => stored.commandId === commandId)) return false;
  if (command.type === "intent_create") return true;
  if (!isKeptByIntent(command)) return false;
  const { intentId } = command;
  return !state.replies.some(
    ({ reply }) => reply.ok && reply.type === "intent" && reply.intentId === intentId && reply.status === "created",
  );
}

/** The commands about an intent whose replies are kept. */
export const KEPT_BY_INTENT = [
  "intent_report",
  "intent_attest",
  "intent_cancel",
  "provider_confirm",
  "provider_money_differs",
] as const;

function isKeptByIntent(
  command: StationCommand,
): command is Extract<StationCommand, { type: (typeof KEPT_BY_INTENT)[number] }> {
  return (KEPT_BY_INTENT as readonly string[]).includes(command.type);
}

/**
 * The newest version of a station whose reply, or whose end of an intent, can have left this state, which is of `version`:
 * what the audit log has to hold before its word that there was none counts. A commit keeps at most one reply and ends at
 * most one intent, so the lists reach at least as many commits back as they are long. Long texts may make the list of ended
 * intents shorter than its bound.
 */
export function forgottenThrough(
  { ended }: Pick<StationState, "ended">,
  version: number,
  what: "reply" | "intent",
): number {
  return Math.max(0, version - (what === "reply" ? STATE_LIMITS.replies : ended.length));
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
    attestation: null,
    moneyMayHaveMoved: fresh ? "" : intent.moneyMayHaveMoved,
    provider: intent.provider === null ? null : providerAsOf(intent.provider, status),
    endedAtMs: null,
    endReason: "",
  };
}

function providerAsOf(provider: ProviderPayment, status: IntentState): ProviderPayment {
  if (status === "created")
    return { configId: provider.configId, qrPayload: "", providerReference: "", confirmedAtMs: null };
  return status === "presented" ? { ...provider, confirmedAtMs: null } : provider;
}
