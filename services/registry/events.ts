/** The registry's audit log, which the owner reads. Each entry is written in the transaction of its change. */

import { type Caller, personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as events from "../bus/messages/events.ts";
import { eventsOfPage } from "../bus/page.ts";
import type { RegistryHandler } from "./deps.ts";
import * as sql from "./sql/events.ts";

/** What a person did in their organization. */
export const ownerEvent = (
  caller: Pick<Caller, "organizationId" | "userId" | "name" | "role">,
  action: string,
  subject: sql.RegistryEvent["subject"],
  data?: sql.RegistryEvent["data"],
): sql.RegistryEvent => ({
  organizationId: caller.organizationId,
  actor: personActor(caller),
  action,
  subject,
  ...(data === undefined ? {} : { data }),
});

const eventMessage = (row: sql.RegistryEventRow): events.RegistryEventEntry => ({
  eventId: row.event_id,
  atMs: row.at.getTime(),
  actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
  action: row.action,
  subject: { kind: row.subject_kind, id: row.subject_id },
  data: row.data,
});

export const listEvents: RegistryHandler<typeof events.listEvents> = async (deps, request) => {
  const { caller, search, sinceId, beforeId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const found = await sql.listEvents(deps.sql, { organizationId, search, sinceId, beforeId, limit });
  return eventsOfPage(found.rows.map(eventMessage), limit, found.searchedThroughId);
};
