/** The registry's audit log, which the owner reads. Each entry is written in the transaction of its change. */

import { type Caller, requirePermission } from "../bus/messages/caller.ts";
import type * as events from "../bus/messages/events.ts";
import { eventsOfPage } from "../bus/page.ts";
import type { RegistryHandler } from "./deps.ts";
import * as sql from "./sql/events.ts";

/** The operator of the installation, who acts on the bus only. Station logs and tables name the registry. */
export const OPERATOR: sql.RegistryActor = { kind: "registry", id: 0, name: "operator" };

/** A person as an actor: the kind is the person's role. */
export const userActor = ({ role, userId, name }: Pick<Caller, "userId" | "name" | "role">): sql.RegistryActor => ({
  kind: role,
  id: userId,
  name,
});

/** What a person did in their organization. */
export const ownerEvent = (
  caller: Pick<Caller, "organizationId" | "userId" | "name" | "role">,
  action: string,
  subject: sql.RegistryEvent["subject"],
  data?: sql.RegistryEvent["data"],
): sql.RegistryEvent => ({
  organizationId: caller.organizationId,
  actor: userActor(caller),
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
