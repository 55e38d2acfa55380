/** What has left a station's bounded state, for the actor host and the gateway. */
import { isEnded } from "../../machines/payment-intent.ts";
import type { recallHistory } from "../bus/messages/audit.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import { readWhenCopied } from "./catch-up.ts";
import type { AuditDeps } from "./deps.ts";
import { AUDIT_LIMITS } from "./limits.ts";
import { type History, readHistory } from "./sql/read-history.ts";

type Request = RequestOf<typeof recallHistory>;

/**
 * Null means that the log never had it, so it is only said once the copy is known to be complete: a host that took a
 * lagging copy's word would carry a repeated command out twice. Complete is as far back as the asker's own memory reaches,
 * where it says so (`throughVersion`), so that nobody waits for commits in which the answer cannot be. Refuses with
 * `unavailable` when the copy lags too long.
 */
export async function recall(deps: AuditDeps, request: Request): Promise<ReplyOf<typeof recallHistory>> {
  const { found, isComplete } = await readWhenCopied(
    deps,
    request.stationId,
    () => readHistory(deps.database, request),
    (history) => isFinal(history, request),
  );
  if (!isComplete) throw new RefusedError({ code: "unavailable", retryAfterMs: AUDIT_LIMITS.catchUpMs });
  return { response: found.response, intent: found.intent };
}

/** An answer never changes, and an ended intent hardly; anything else may only not have been copied yet. */
function isFinal({ response, intent, version }: History, request: Request): boolean {
  const { commandId, intentId, throughVersion } = request;
  if (throughVersion !== undefined && version >= throughVersion) return true;
  const hasResponse = commandId === undefined || response !== null;
  return hasResponse && (intentId === undefined || (intent !== null && isEnded(intent.status)));
}
