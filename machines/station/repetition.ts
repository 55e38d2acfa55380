/**
 * The answer that a command has got before (I6): from the kept replies, or from its intent, which knows by which commands it was
 * created, reported, attested and cancelled. The intent may have left the state long ago; then the host has recalled it.
 */
import { digestOf } from "../digest.ts";
import { namedIntent, type StepInput } from "./outcome.ts";
import type { StationReply } from "./reply.ts";
import type { StationState } from "./state.ts";

/** Undefined when the command is new, or so old that nothing knows of it any more. */
export function earlierReply(state: StationState, input: StepInput): StationReply | undefined {
  const kept = state.replies.find((entry) => entry.commandId === input.commandId);
  return kept === undefined ? replyOfIntent(state, input) : kept.reply;
}

function replyOfIntent(state: StationState, input: StepInput): StationReply | undefined {
  const { command, actor } = input;
  if (!("intentId" in command)) return undefined;
  const { intentId } = command;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined) return undefined;
  switch (command.type) {
    case "intent_create":
      // An intent's id is drawn once for each idempotency key.
      return { ok: true, type: "intent", intentId, status: "created" };
    case "intent_report": {
      const key = digestOf(input.commandId);
      const report = intent.reports.find((earlier) => earlier.key === key && earlier.deviceId === actor.id);
      return report && { ok: true, type: "report", intentId, report };
    }
    case "provider_confirm":
    case "intent_attest": {
      const isSettled = intent.status === "succeeded" && intent.attestation?.commandId === digestOf(input.commandId);
      return isSettled ? { ok: true, type: "intent", intentId, status: "succeeded" } : undefined;
    }
    case "intent_cancel":
      return intent.cancelKey === digestOf(input.commandId)
        ? { ok: true, type: "intent", intentId, status: "cancelled" }
        : undefined;
    default:
      return undefined;
  }
}
