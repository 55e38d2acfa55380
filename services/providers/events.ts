/** The audit log of provider configs, their secrets and issues. */

import { requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/provider-events.ts";
import type { Handler } from "../bus/operation.ts";
import { eventsOfPage } from "../bus/page.ts";
import type { ProvidersDeps } from "./deps.ts";
import * as sql from "./sql/events.ts";

/** Oldest first after `sinceId`; otherwise newest first. Refuses with `permission_denied`. */
export const listProviderEvents: Handler<ProvidersDeps, typeof bus.listProviderEvents> = async (deps, request) => {
  const { caller, search, sinceId, beforeId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const page = { organizationId, search, sinceId, beforeId, limit };
  const found = await sql.listProviderEvents(deps.database, page);
  return eventsOfPage(found.rows.map(providerEventOf), limit, found.searchedThroughId);
};

function providerEventOf(row: sql.ProviderEventRow): bus.ProviderEventEntry {
  return {
    eventId: row.event_id,
    atMs: row.at.getTime(),
    actor: { kind: row.actor_role, id: row.actor_id, name: row.actor_name },
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id },
    data: row.data,
  };
}
