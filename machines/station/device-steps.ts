/** The steps of a companion: a fetch presents the intent, and a report is evidence, which ends nothing (I3). */
import { digestOf } from "../digest.ts";
import { isEnded, type PaymentIntent, type Report, wireStatus } from "../payment-intent.ts";
import { type BlockedReason, blockedReason } from "../standing.ts";
import type { StationEvent } from "./event.ts";
import { moveIntent } from "./intent-move.ts";
import { type Evidence, hasRoom, isKept, kindOfOutcome, rememberEvidence } from "./late-evidence.ts";
import { type Command, namedIntent, type Outcome, refuse, type StepInput } from "./outcome.ts";
import { reasonOfLateOutcome } from "./reasons.ts";
import { findDevice, type StationDevice, type StationState } from "./state.ts";
import { addLateReason, endSilence, isHeldBack, needsConfirmationAgain } from "./unclear-collections.ts";

/** The only state change that a device causes alone (contract, "States and transitions"). */
export function presentIntent(state: StationState, command: Command<"intent_present">, input: StepInput): Outcome {
  const { intentId } = command;
  const device = actingDevice(state, input);
  if (device === undefined) return refuse("handoff_not_assigned");
  const blocked = standingReason(state, device, input);
  if (blocked !== "") return refuse(blocked);
  const { deviceId } = device;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined || intent.deviceId !== deviceId) return refuse("handoff_not_assigned");
  if (isHeldBack(state, intent)) return refuse("handoff_not_assigned");
  // Only the fetched intent may change: another one may be active by now.
  const next = state.intent === intent ? moveIntent(state, { type: "PRESENT", atMs: input.atMs }) : undefined;
  // The intent was presented before or has changed: the fetch shows its current status.
  if (next === undefined || next.intent === null)
    return { reply: { ok: true, type: "intent", intentId, status: intent.status } };
  return {
    state: next,
    events: [{ type: "intent_presented", intentId, deviceId }],
    reply: { ok: true, type: "intent", intentId, status: next.intent.status },
  };
}

export function reportOutcome(state: StationState, command: Command<"intent_report">, input: StepInput): Outcome {
  const { intentId, outcome, providerReference, providerCode } = command;
  const device = actingDevice(state, input);
  // Not final: the device keeps its report until its credential is refused, or the station knows the device again.
  if (device === undefined) return refuse("device_unknown");
  // The gateway's reason counts too, because the gateway may know about a freeze before the host.
  const blocked = standingReason(state, device, input) || (command.blockedReason ?? "");
  const { deviceId } = device;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined || intent.deviceId !== deviceId) return refuse(blocked || "handoff_not_assigned");
  if (blocked !== "" || isEnded(intent.status)) return keepLateEvidence(state, { intent, blocked, command }, input);
  const report: Report = {
    deviceId,
    outcome,
    providerReference,
    providerCode,
    reportedAtMs: input.atMs,
    key: digestOf(input.commandId),
  };
  const next = moveIntent(state, { type: "REPORT", report });
  if (next === undefined) return refuse("intent_not_actionable", { status: wireStatus(intent.status) });
  return {
    state: next,
    events: [{ type: "outcome_reported", intentId, deviceId, outcome, providerReference, providerCode }],
    reply: { ok: true, type: "report", intentId, report },
  };
}

/**
 * Refuses evidence that arrives after the end or from a blocked device, but keeps it, because money may have moved. The order is
 * unclear from now on, or from the end of a collection that is still under way. The station refuses repeated evidence, and
 * evidence beyond the bound of its kind, without a commit. It keeps a success beyond the bound only if the cashier has confirmed
 * the earlier ones, because the cashier must then confirm again.
 *
 * The report that no money was taken removes the reason for the device's silence, even if the station keeps its content already.
 * A blocked device can only add a reason. After the block, the station accepts its report under the same key.
 */
function keepLateEvidence(
  state: StationState,
  late: {
    readonly intent: PaymentIntent;
    readonly blocked: BlockedReason | "";
    readonly command: Command<"intent_report">;
  },
  input: StepInput,
): Outcome {
  const { intent, blocked, command } = late;
  const { intentId, orderId } = intent;
  const { outcome, providerReference, providerCode } = command;
  const status = wireStatus(intent.status);
  const refusal = blocked === "" ? refuse("intent_not_actionable", { status }) : refuse(blocked);
  const kind = kindOfOutcome(outcome);
  const evidence: Evidence = { intentId, kind, content: [outcome, providerReference, providerCode] };
  const withReason = withLateReason(state, intent, command, input);
  const isNew = !isKept(state, evidence);
  const isAdded =
    isNew && (hasRoom(state, evidence) || (kind === "asserted" && needsConfirmationAgain(state, withReason)));
  const cleared = blocked === "" && kind === "other" ? endSilence(state, intent) : undefined;
  if (!isAdded && cleared === undefined) return refusal;
  const events: StationEvent[] = [];
  const reported = { outcome, providerReference, providerCode };
  if (isAdded)
    events.push({
      type: "late_evidence_kept",
      intentId,
      deviceId: input.actor.id,
      ...reported,
      status,
      blockedReason: blocked,
    });
  if (cleared !== undefined) events.push({ type: "unclear_resolved", intentId, orderId });
  const next = cleared ?? withReason;
  return { ...refusal, state: isAdded ? { ...next, ...rememberEvidence(next, evidence) } : next, events };
}

function withLateReason(
  state: StationState,
  intent: PaymentIntent,
  { outcome, providerReference }: Command<"intent_report">,
  input: StepInput,
): StationState {
  const reason = reasonOfLateOutcome(outcome);
  if (reason === undefined || intent.status === "succeeded") return state;
  if (!isEnded(intent.status)) return moveIntent(state, { type: "MARK", reason }) ?? state;
  const isSuccess = outcome === "reported_success";
  // The companion reported the same payment before the end.
  const isKnown = isSuccess && providerReference !== "" && hasReportedSuccess(intent, providerReference);
  const knownAs = isKnown ? "success_reported" : undefined;
  return addLateReason(state, intent, { reason, isNewPayment: isSuccess && !isKnown, knownAs }, input);
}

function hasReportedSuccess({ reports }: PaymentIntent, reference: string): boolean {
  return reports.some((report) => report.outcome === "reported_success" && report.providerReference === reference);
}

/** The acting device. Undefined for a pending device: it was reset, so its command uses a revoked credential. */
function actingDevice(state: StationState, { actor }: StepInput): StationDevice | undefined {
  const device = actor.kind === "device" ? findDevice(state, actor.id) : undefined;
  return device?.status === "pending" ? undefined : device;
}

/** The station checks standing too: the gateway's data may be old, the log is not (I8). */
function standingReason(state: StationState, device: StationDevice, { switches }: StepInput): BlockedReason | "" {
  const { organizationId, stationId, status: stationStatus } = state;
  return blockedReason({ organizationId, stationId, stationStatus, device }, switches);
}
