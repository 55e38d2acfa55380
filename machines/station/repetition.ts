/**
 * Finds the earlier answer to a repeated command (I6), in the kept replies or from its intent. The intent has the ids or digests
 * of the commands that created, reported, attested and cancelled it. When it has left the state, the host recalls it.
 */
import { digestOf } from "../digest.ts";
import type { PaymentIntent, Report } from "../payment-intent.ts";
import { digestOfText } from "../report-text.ts";
import type { StationCommandType } from "./command.ts";
import { leaseReply, repeatAcquisition } from "./lease-steps.ts";
import { type Command, namedIntent, type StepInput } from "./outcome.ts";
import type { StationReply } from "./reply.ts";
import type { StationState, StoredReply } from "./state.ts";

const NO_TEXT = { providerReference: "", providerCode: "" } as const;

/** The earlier answer. Undefined when the command is new, or so old that no trace of it is left. */
export function earlierReply(state: StationState, input: StepInput): StationReply | undefined {
  return keptReply(state, input) ?? replyOfIntent(state, input);
}

/** The values by which the station recognises a repetition. */
interface Repetition extends Pick<StepInput, "commandId" | "actor" | "atMs"> {
  readonly command:
    | Command<"lease_acquire">
    | Command<"intent_attest">
    | { readonly type: Exclude<StationCommandType, "lease_acquire" | "intent_attest"> };
}

/** The kept answer to a command. The answer to a lease command shows the current lease. */
export function keptReply(state: StationState, input: Repetition): StationReply | undefined {
  const kept = state.replies.find((entry) => entry.commandId === input.commandId);
  if (kept === undefined) return undefined;
  const { command } = input;
  if (command.type === "lease_acquire")
    return repeatAcquisition(state, kept, { ...input, requestDigest: command.requestDigest });
  if (command.type === "intent_attest" && isOtherReference(kept, command))
    return { ok: false, code: "idempotency_key_reused" };
  return command.type === "lease_release" || command.type === "lease_break" ? leaseReply(state) : kept.reply;
}

/** Whether the refused attestation had another reference. A reference that is left out is not compared. */
function isOtherReference({ requestDigest }: StoredReply, { reference }: Command<"intent_attest">): boolean {
  if (requestDigest === undefined || reference === undefined) return false;
  return requestDigest !== digestOf(reference.trim());
}

function replyOfIntent(state: StationState, input: StepInput): StationReply | undefined {
  const { command, actor } = input;
  if (!("intentId" in command)) return undefined;
  const { intentId } = command;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined) return undefined;
  const { type } = command;
  // The settlement service allocates one intent id for each idempotency key.
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

/**
 * A report whose text has left the state. A repetition has the same text. Under the same key with another text, the answer has
 * no text, because the station did not record this one.
 */
function formerReport(
  intent: PaymentIntent,
  { providerReference, providerCode }: Command<"intent_report">,
  key: string,
  deviceId: number,
): Report | undefined {
  const former = intent.deviceId === deviceId ? intent.formerReports.find((report) => report.key === key) : undefined;
  if (former === undefined) return undefined;
  const { textDigest, ...kept } = former;
  const isSame = textDigest === undefined || textDigest === digestOfText({ providerReference, providerCode });
  return { ...kept, deviceId, ...(isSame ? { providerReference, providerCode } : NO_TEXT) };
}
