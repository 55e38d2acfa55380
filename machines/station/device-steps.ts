/** What a companion can do: fetch (which presents) and report (which is evidence and ends nothing, I3). */
import { isEnded, type Report, wireStatus } from "../payment-intent.ts";
import { blockedReason } from "../standing.ts";
import { addDoubt } from "./doubts.ts";
import { moveIntent } from "./intent-move.ts";
import { type Command, namedIntent, type Outcome, refuse, type StepInput } from "./outcome.ts";
import { findDevice, type StationState } from "./state.ts";

/** The only state change that a device causes on its own (contract, "States and transitions"). */
export function presentIntent(state: StationState, command: Command<"intent_present">, input: StepInput): Outcome {
  const { intentId } = command;
  const refused = refuseBlockedDevice(state, input);
  if (refused !== undefined) return refused;
  const deviceId = input.actor.id;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined || intent.deviceId !== deviceId) return refuse("handoff_not_assigned");
  // Only the intent that was fetched may move: another one may have become the active one meanwhile.
  const next = state.intent === intent ? moveIntent(state, { type: "PRESENT", atMs: input.atMs }) : undefined;
  // Presented already, or moved on: the fetch simply shows what is.
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
  const refused = refuseBlockedDevice(state, input);
  if (refused !== undefined) return refused;
  const deviceId = input.actor.id;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined || intent.deviceId !== deviceId) return refuse("handoff_not_assigned");
  if (isEnded(intent.status)) {
    const status = wireStatus(intent.status);
    const { orderId } = intent;
    const mayBePaid = status !== "succeeded" && (outcome === "reported_success" || outcome === "reported_unknown");
    return {
      state: mayBePaid ? addDoubt(state, { orderId, intentId, reason: "late_evidence" }) : state,
      events: [{ type: "late_evidence_kept", intentId, deviceId, outcome, providerReference, providerCode, status }],
      reply: { ok: false, code: "intent_not_actionable", status },
    };
  }
  const report: Report = { deviceId, outcome, providerReference, providerCode, reportedAtMs: input.atMs };
  const next = moveIntent(state, { type: "REPORT", report });
  if (next === undefined) return refuse("intent_not_actionable", { status: wireStatus(intent.status) });
  return {
    state: next,
    events: [{ type: "outcome_reported", intentId, deviceId, outcome, providerReference, providerCode }],
    reply: { ok: true, type: "report", intentId, report },
  };
}

/** Standing is checked here too: the gateway's view of it may be a moment old, the log's is not (I8). */
function refuseBlockedDevice(state: StationState, input: StepInput): Outcome | undefined {
  const device = input.actor.kind === "device" ? findDevice(state, input.actor.id) : undefined;
  // A pending device has been reset: whatever still comes in its name uses a credential that is gone.
  if (device === undefined || device.status === "pending") return refuse("handoff_not_assigned");
  const { organizationId, stationId, status: stationStatus } = state;
  const reason = blockedReason({ organizationId, stationId, stationStatus, device }, input.switches);
  return reason === "" ? undefined : refuse(reason);
}
