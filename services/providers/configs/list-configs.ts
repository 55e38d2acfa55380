/** Reading configs and the trail of their changes. */

import { requirePermission } from "../../bus/access.ts";
import type { listProviderConfigs, listProviderEvents } from "../../bus/messages/providers.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import * as configs from "../sql/configs.ts";
import { type ProviderEventRow, selectEvents } from "../sql/events.ts";
import { configsOnWire } from "./config-wire.ts";

export async function listConfigs(
  deps: ProvidersDeps,
  { caller, filialId }: RequestOf<typeof listProviderConfigs>,
): Promise<ReplyOf<typeof listProviderConfigs>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const rows = await configs.listConfigs(deps.database, { organizationId, filialId, limit: PROVIDER_LIMITS.configs });
  return { configs: await configsOnWire(deps.database, rows) };
}

export async function listEvents(
  deps: ProvidersDeps,
  { caller, sinceId, limit }: RequestOf<typeof listProviderEvents>,
): Promise<ReplyOf<typeof listProviderEvents>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  // One more than was asked for tells whether there are more.
  const rows = await selectEvents(deps.database, { organizationId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(eventOnWire), limit);
  return { events: page, hasMore };
}

function eventOnWire(row: ProviderEventRow): ReplyOf<typeof listProviderEvents>["events"][number] {
  return {
    eventId: row.event_id,
    atMs: row.at.getTime(),
    actor: { role: row.actor_role, id: row.actor_id, name: row.actor_name },
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id },
    data: row.data,
  };
}
