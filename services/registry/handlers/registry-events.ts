/** The owner's audit trail of the registry, page by page. */
import type { listRegistryEvents, RegistryEventEntry } from "../../bus/messages/registry.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import type { RegistryDeps } from "../deps.ts";
import { REGISTRY_LIMITS } from "../limits.ts";
import { requirePermission } from "../permissions.ts";
import { selectEvents } from "../sql/registry-events.ts";
import { registryEventOnWire } from "../wire.ts";

/** Refuses with `permission_denied`. Another organization's events are not there. */
export async function handleListRegistryEvents(
  deps: RegistryDeps,
  { caller, sinceId, limit }: RequestOf<typeof listRegistryEvents>,
): Promise<ReplyOf<typeof listRegistryEvents>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  // One more than was asked for tells whether there are more.
  const rows = await selectEvents(deps.sql, { organizationId, sinceId, limit: limit + 1 });
  const events = firstPage(rows.slice(0, limit).map(registryEventOnWire));
  return { events, hasMore: events.length < rows.length };
}

/** As many of these as fit one bus message, one at least: an event may carry long names and launch references. */
function firstPage(events: RegistryEventEntry[]): RegistryEventEntry[] {
  let bytes = 0;
  const end = events.findIndex((event, index) => {
    bytes += Buffer.byteLength(JSON.stringify(event));
    return index > 0 && bytes > REGISTRY_LIMITS.eventsPageBytes;
  });
  return end === -1 ? events : events.slice(0, end);
}
