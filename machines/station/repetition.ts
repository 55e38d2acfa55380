/**
 * The answer that a command has got before (I6): from the kept replies, or from its intent, which knows by which commands it was
 * created, reported, attested and cancelled. The intent may have left the state long ago; then the host has recalled it.
 */
import { digestOf } from "../digest.ts";
import type { PaymentIntent, Report } from "../payment-intent.ts";
import type { StationCommandType } from "./command.ts";
import { leaseReply, repeatAcquisition } from "./lease-steps.ts";
import { type Command, namedIntent, type StepInput } from "./outcome.ts";
import type { StationReply } from "./reply.ts";
import type { StationState } from "./state.ts";

/** Undefined when the command is new, or so old that nothing knows of it any more. */
export function earlierReply(state: StationState, input: StepInput): StationReply | undefined {
  return keptReply(state, input) ?? replyOfIntent(state, input);
}

/** What a repetition is known by. */
interface Repetition extends Pick<StepInput, "commandId" | "actor" | "atMs"> {
  readonly command: Command<"lease_acquire"> | { readonly type: Exclude<StationCommandType, "lease_acquire"> };
}

/** The answer to a command whose reply is kept. Of a lease command it shows the lease as it is now. */
export function keptReply(state: StationState, input: Repetition): StationReply | undefined {
  const kept = state.replies.find((entry) => entry.commandId === input.commandId);
  if (kept === undefined) return undefined;
  const { command } = input;
  if (command.type === "lease_acquire")
    return repeatAcquisition(state, kept, { ...input, requestDigest: command.requestDigest });
  return command.type === "lease_release" || command.type === "lease_break" ? leaseReply(state) : kept.reply;
}

function replyOfIntent(state: StationState, input: StepInput): StationReply | undefined {
  const { command, actor } = input;
  if (!("intentId" in command)) return undefined;
  const { intentId } = command;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined) return undefined;
  const { type } = command;
  // An intent's id is drawn once for each idempotency key.
  if (type === "intent_create") return { ok: true, type: "intent", intentId, status: "created" };
  const key = digestOf(input.commandId);
  if (command.type === "intent_report") {
    const report = intent.reports.find((earlier) => earlier.key === key && earlier.deviceId === actor.id);
    const repeated = report ?? formerReport(intent, command, key, actor.id);
    return repeated && { ok: true, type: "report", intentId, report: repeated };
  }
  const isSettled = intent.status === "succeeded" && intent.attestation?.commandId === key;
  if ((type === "intent_attest" || type === "provider_confirm") && isSettled)
    return { ok: true, type: "intent", intentId, status: "succeeded" };
  if (type === "intent_cancel" && intent.cancelKey === key)
    return { ok: true, type: "intent", intentId, status: "cancelled" };
  return undefined;
}

/** A report whose text the state keeps no more: the repetition brings the same text. */
function formerReport(
  intent: PaymentIntent,
  { providerReference, providerCode }: Command<"intent_report">,
  key: string,
  deviceId: number,
): Report | undefined {
  const former = intent.deviceId === deviceId ? intent.formerReports.find((report) => report.key === key) : undefined;
  return former && { ...former, deviceId, providerReference, providerCode };
}
