/** A station's events, page by page. */
import { requirePermission } from "../bus/messages/caller.ts";
import type * as messages from "../bus/messages/events.ts";
import type { Handler } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { RefusedError } from "../bus/refusals.ts";
import { waitUntilCopied } from "./copy/progress.ts";
import type { AuditDeps } from "./deps.ts";
import { hasLaterEvents, selectStationEvents, stationExists } from "./sql/events.ts";

/** Refuses with `permission_denied`, or with `not_found` for a station that is not the organization's. */
export const listStationEvents: Handler<AuditDeps, typeof messages.listStationEvents> = async (deps, request) => {
  const { caller, stationId, sinceVersion, limit } = request;
  const { organizationId } = caller;
  requirePermission(caller, "organization.manage", "reconciliation.manage");
  if (!(await stationExists(deps.database, { organizationId, stationId }))) {
    throw new RefusedError({ code: "not_found" });
  }
  // A copy that lags has fewer events, and `hasMore` is right for it; the next page has the rest.
  await waitUntilCopied(deps, stationId);
  const found = await selectStationEvents(deps.database, { organizationId, stationId, sinceVersion, limit });
  const events = wholeCommits(found);
  const version = events.at(-1)?.version ?? sinceVersion;
  return { events, hasMore: await hasLaterEvents(deps.database, { stationId, version }) };
};

/** As many of these as one message can carry, without dividing a commit: the next page begins after a version. */
function wholeCommits(found: readonly messages.AuditEvent[]): messages.AuditEvent[] {
  const { page } = firstPage(found, found.length);
  const cutVersion = found[page.length]?.version;
  const whole = page.filter(({ version }) => version !== cutVersion);
  // A commit is far smaller than a message, so the first one is always whole.
  return whole.length > 0 ? whole : found.filter(({ version }) => version === cutVersion);
}
