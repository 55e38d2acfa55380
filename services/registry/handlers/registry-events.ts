/** The owner's audit trail of the registry, page by page. */
import { BOUNDS } from "../../bus/bounds.ts";
import type { listEvents } from "../../bus/messages/events.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import type { RegistryDeps } from "../deps.ts";
import { requirePermission } from "../permissions.ts";
import { selectEvents } from "../sql/registry-events.ts";
import { registryEventOnWire } from "../wire.ts";

/** Refuses with `permission_denied`. Another organization's events are not there. */
export async function handleListRegistryEvents(
  deps: RegistryDeps,
  { caller, sinceId, beforeId, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listEvents>,
): Promise<ReplyOf<typeof listEvents>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const rows = await selectEvents(deps.sql, { organizationId, sinceId, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(registryEventOnWire), limit);
  return { events: page, hasMore };
}
