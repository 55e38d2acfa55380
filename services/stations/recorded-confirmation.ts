/**
 * The check before an overdue QR expires: the provider's confirmation may have been recorded in time while this station
 * could not be reached (design §9.7). While the providers service does not answer, the intent does not expire by itself.
 * A new collection is not kept waiting for it (design §9.5): then the intent expires, and its order is marked.
 */
import type { NatsConnection } from "nats";
import { needsConfirmationCheck } from "../../machines/station/deadlines.ts";
import type { RecordedConfirmation } from "../../machines/station/outcome.ts";
import type { StationState } from "../../machines/station/state.ts";
import { findRecordedConfirmation } from "../bus/messages/providers.ts";
import { call } from "../bus/operation.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { HostCommand } from "./work.ts";

export async function recordedConfirmationOf(
  { nc, log }: { readonly nc: NatsConnection; readonly log: Log },
  {
    state,
    command,
    atMs,
  }: { readonly state: StationState | null; readonly command: HostCommand; readonly atMs: number },
): Promise<RecordedConfirmation> {
  if (state === null || state.intent === null || !needsConfirmationCheck(state, atMs)) return "none";
  const { intentId } = state.intent;
  const unanswered: RecordedConfirmation = command.type === "intent_create" ? "none" : "unknown";
  try {
    const found = await call(nc, findRecordedConfirmation, { intentId }, STATION_LIMITS.confirmationCheckMs);
    if (!found.isOver) return unanswered;
    return found.providerReference === null ? "none" : { providerReference: found.providerReference };
  } catch (error) {
    log.warn({ err: error, intentId, isEnded: unanswered === "none" }, "a confirmation could not be checked");
    return unanswered;
  }
}
