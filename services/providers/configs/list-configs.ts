/** Reading configs and the trail of their changes. */
import { requirePermission } from "../../bus/access.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type { listProviderConfigs, listProviderEvents } from "../../bus/messages/provider-configs.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import type { ProvidersDeps } from "../deps.ts";
import * as configs from "../sql/configs.ts";
import { type ProviderEventRow, selectEvents } from "../sql/events.ts";
import { configsOnWire } from "./config-wire.ts";

export async function listConfigs(
  deps: ProvidersDeps,
  { caller, filialId, sinceId, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listProviderConfigs>,
): Promise<ReplyOf<typeof listProviderConfigs>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  // One more than was asked for tells whether there are more.
  const rows = await configs.listConfigs(deps.database, { organizationId, filialId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(await configsOnWire(deps.database, rows), limit);
  return { configs: page, hasMore };
}

export async function listEvents(
  deps: ProvidersDeps,
  { caller, sinceId, beforeId, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listProviderEvents>,
): Promise<ReplyOf<typeof listProviderEvents>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  // One more than was asked for tells whether there are more.
  const rows = await selectEvents(deps.database, { organizationId, sinceId, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(eventOnWire), limit);
  return { events: page, hasMore };
}

function eventOnWire(row: ProviderEventRow): ReplyOf<typeof listProviderEvents>["events"][number] {
  return {
    eventId: row.event_id,
    atMs: row.at.getTime(),
    actor: { kind: row.actor_role, id: row.actor_id, name: row.actor_name },
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id },
    data: row.data,
  };
}
