/**
 * The station: one pure step from a committed state and a command to the next state, its events and the reply. A host does
 * load → `step()` → append → reply.
 *
 *   command ──► due deadlines (intent, lease) ──► the command's own step ──► {state, events, reply}
 *
 * A step without events changes nothing, and the host does not commit it.
 */
import { attestIntent, cancelIntent, createIntent } from "./collection-steps.ts";
import { applyDeadlines } from "./deadlines.ts";
import { presentIntent, reportOutcome } from "./device-steps.ts";
import type { StationEvent } from "./event.ts";
import { acquireLease, breakLease, endSessions, releaseLease, renewLease } from "./lease-steps.ts";
import { markDeviceSeen, markDeviceSilent } from "./liveness-steps.ts";
import { ACCEPTED, keepReply, type Outcome, type StepInput } from "./outcome.ts";
import {
  applyProviderCleared,
  confirmPayment,
  failPayment,
  inquireOrder,
  keepDifferingMoney,
  noteReportedEnd,
  presentQr,
} from "./provider-steps.ts";
import { putDevice, putOrder, putProvider, putStation } from "./registry-steps.ts";
import { earlierReply } from "./repetition.ts";
import type { StationReply } from "./reply.ts";
import { finishSettlement, refuseSettlement } from "./settlement-steps.ts";
import type { StationState, StoredReply } from "./state.ts";

export interface Step {
  readonly state: StationState;
  readonly events: readonly StationEvent[];
  readonly reply: StationReply;
  /** True when the reply is the earlier one to the same command id: this step changes nothing. */
  readonly repeated: boolean;
}

/** One step of a station. `before` is null for a station that has no commit yet. */
export function step(
  before: StationState | null,
  input: StepInput,
): Step | { readonly state: null; readonly reply: StationReply } {
  if (before === null) {
    if (input.command.type !== "station_put") return { state: null, reply: { ok: false, code: "station_unknown" } };
    return finish(putStation(null, input.command, input.atMs), input, [], null);
  }
  const earlier = earlierReply(before, input);
  if (earlier !== undefined) return { state: before, events: [], reply: earlier, repeated: true };
  const due = applyDeadlines(before, input);
  return finish(dispatch(due.state, input), input, due.events, due.state);
}

function dispatch(state: StationState, input: StepInput): Outcome {
  const { command } = input;
  switch (command.type) {
    case "station_put":
      return putStation(state, command, input.atMs);
    case "device_put":
      return putDevice(state, command, input.atMs);
    case "sessions_ended":
      return endSessions(state, command, input);
    case "order_put":
      return putOrder(state, command, input.atMs);
    case "device_seen":
      return markDeviceSeen(state, command, input.atMs);
    case "device_silent":
      return markDeviceSilent(state, command, input.atMs);
    case "lease_acquire":
      return acquireLease(state, command, input);
    case "lease_renew":
      return renewLease(state, command, input);
    case "lease_release":
      return releaseLease(state, input);
    case "lease_break":
      return breakLease(state, input);
    case "intent_create":
      return createIntent(state, command, input);
    case "intent_attest":
      return attestIntent(state, command, input);
    case "intent_cancel":
      return cancelIntent(state, command, input);
    case "intent_present":
      return presentIntent(state, command, input);
    case "intent_report":
      return reportOutcome(state, command, input);
    case "provider_put":
      return putProvider(state, command);
    case "provider_confirm":
      return confirmPayment(state, command, input);
    case "provider_failed":
      return failPayment(state, command, input);
    case "provider_cleared":
      return applyProviderCleared(state, command, input);
    case "provider_money_differs":
      return keepDifferingMoney(state, command, input);
    case "order_inquire":
      return inquireOrder(state, command);
    case "end_reported":
      return noteReportedEnd(state, command);
    case "qr_ready":
      return presentQr(state, command, input.atMs);
    case "settlement_succeeded":
      return finishSettlement(state, command, input.atMs);
    case "settlement_refused":
      return refuseSettlement(state, command, input);
    case "rule_out":
      return { events: [{ type: "command_ruled_out", commandId: command.commandId }], reply: ACCEPTED };
    case "tick":
      return { reply: ACCEPTED };
  }
}

/** Joins the outcomes of the deadlines and of the command. Keeps the reply for a repetition when there is a commit. */
function finish(
  outcome: Outcome,
  input: StepInput,
  dueEvents: readonly StationEvent[],
  base: StationState | null,
): Step | { state: null; reply: StationReply } {
  const state = outcome.state ?? base;
  if (state === null) return { state: null, reply: outcome.reply };
  const events = [...dueEvents, ...(outcome.events ?? [])];
  const did = (outcome.events?.length ?? 0) > 0;
  const replies =
    did && isRepeatable(input, outcome.reply) ? keepReply(state, storedReply(input, outcome.reply)) : state.replies;
  return { state: { ...state, replies }, events, reply: outcome.reply, repeated: false };
}

function storedReply({ commandId, command }: StepInput, reply: StationReply): StoredReply {
  const requestDigest = command.type === "lease_acquire" ? command.requestDigest : undefined;
  return requestDigest === undefined ? { commandId, reply } : { commandId, reply, requestDigest };
}

/**
 * Whether a repetition needs the stored reply. It does not for the commands of feeds, which are idempotent by content, and for a
 * second fetch or renewal, which does the same as the first. Their replies must not push out a reply that is needed.
 */
function isRepeatable(input: StepInput, reply: StationReply): boolean {
  switch (input.command.type) {
    case "station_put":
    case "device_put":
    case "sessions_ended":
    case "order_put":
    case "device_seen":
    case "device_silent":
    case "settlement_succeeded":
    case "settlement_refused":
    case "tick":
    case "rule_out":
    case "lease_renew":
    case "intent_present":
    case "provider_put":
    case "provider_failed":
    case "provider_cleared":
    case "provider_money_differs":
    case "order_inquire":
    case "end_reported":
    case "qr_ready":
      return false;
    case "intent_attest":
    case "intent_cancel":
      // The intent has the id of the command that attested or cancelled it. The saga's step keeps a refusal of the seam.
      return false;
    case "provider_confirm":
      // A confirmation gets its reply after the seam's decision. Only a late payment gets it at once.
      return !reply.ok;
    case "intent_report":
      // The intent has its reports. After a block, the device may report again under the same key.
      return !reply.ok && reply.code === "intent_not_actionable";
    case "lease_acquire":
    case "lease_release":
    case "lease_break":
    case "intent_create":
      return reply.ok;
  }
}
