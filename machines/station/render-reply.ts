/** Makes the full answer to a command from a stored reply and its intent. */
import type { IntentState, PaymentIntent, ProviderPayment } from "../payment-intent.ts";
import type { StationReply } from "./reply.ts";
import { findIntent, type StationState } from "./state.ts";

/** A reply with its intent, as the intent was at the time of the reply. */
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

/** An intent as it was in an earlier state, without later data. */
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
