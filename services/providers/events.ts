/** The audit log of provider configs, their secrets and issues: the operator as its actor, and reading it. */

import { requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/provider-events.ts";
import type { Handler } from "../bus/operation.ts";
import { eventsOfPage } from "../bus/page.ts";
import type { ProviderActor } from "../db/provider-audit-log.ts";
import type { ProvidersDeps } from "./deps.ts";
import * as sql from "./sql/events.ts";

/** The operator of the installation acts on the bus only; the registry's audit log has the same name. */
export const OPERATOR: ProviderActor = { kind: "registry", id: 0, name: "operator" };
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
