/** A station's events, page by page. */
import { requirePermission } from "../bus/messages/caller.ts";
import type * as messages from "../bus/messages/events.ts";
import type { Handler } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing } from "../bus/refusals.ts";
import { waitUntilCopied } from "./copy/progress.ts";
import type { AuditDeps } from "./deps.ts";
import * as sql from "./sql/events.ts";

/** Refuses with `permission_denied`, or with `not_found` for a station of another organization. */
export const listStationEvents: Handler<AuditDeps, typeof messages.listStationEvents> = async (deps, request) => {
  const { caller, stationId, sinceVersion, limit } = request;
  const { organizationId } = caller;
  requirePermission(caller, "organization.manage", "reconciliation.manage");
  existing(await sql.stationExists(deps.database, { organizationId, stationId }));
  // While the copy lags, `events` and `hasMore` are those of the copy; a later request gets the rest.
  await waitUntilCopied(deps, stationId);
  const found = await sql.listStationEvents(deps.database, { organizationId, stationId, sinceVersion, limit });
  const events = wholeCommits(found);
  const version = events.at(-1)?.version ?? sinceVersion;
  return { events, hasMore: await sql.hasLaterEvents(deps.database, { stationId, version }) };
};

/** As many events as one message can carry. A page has all events of a commit or none, because the next page begins after a version. */
function wholeCommits(found: readonly messages.AuditEvent[]): messages.AuditEvent[] {
  const { page } = firstPage(found, found.length);
  const cutVersion = found[page.length]?.version;
  const whole = page.filter(({ version }) => version !== cutVersion);
  // The page may end inside the first commit. A commit is far smaller than a message, so all of it fits.
  return whole.length > 0 ? whole : found.filter(({ version }) => version === cutVersion);
}
