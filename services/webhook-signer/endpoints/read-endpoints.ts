/** Reading endpoints; their secrets are told of, never shown. */
import { requirePermission } from "../../bus/access.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type { getWebhookEndpoint, listWebhookEndpoints } from "../../bus/messages/webhook-endpoints.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import type { SignerDeps } from "../deps.ts";
import * as endpoints from "../sql/endpoints.ts";
import { find } from "./change-endpoint.ts";
import { endpointOnWire, endpointsOnWire } from "./endpoint-wire.ts";

/** Refuses with `permission_denied`. */
export async function listEndpoints(
  { database }: Pick<SignerDeps, "database">,
  { caller, consumerId, sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listWebhookEndpoints>,
): Promise<ReplyOf<typeof listWebhookEndpoints>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  // One more than was asked for tells whether there are more.
  const rows = await endpoints.listEndpoints(database, { organizationId, consumerId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(await endpointsOnWire(database, rows), limit);
  return { endpoints: page, hasMore };
}

/** Refuses with `permission_denied` or `not_found`. */
export async function get(
  deps: Pick<SignerDeps, "database">,
  { caller, endpointId }: RequestOf<typeof getWebhookEndpoint>,
): Promise<ReplyOf<typeof getWebhookEndpoint>> {
  const row = await find(deps, caller, endpointId);
  return { endpoint: await endpointOnWire(deps.database, row) };
}
