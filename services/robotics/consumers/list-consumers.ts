import { BOUNDS } from "../../bus/bounds.ts";
import { requirePermission } from "../../bus/messages/caller.ts";
import type { listConsumers } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import type { RoboticsDeps } from "../deps.ts";
import { selectConsumers } from "../sql/consumers.ts";
import { consumerOnWire } from "./consumer-wire.ts";

/** By id; a foreign filial has none. Refuses with `permission_denied`. */
export async function list(
  { database }: Pick<RoboticsDeps, "database">,
  { caller, filialId, sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listConsumers>,
): Promise<ReplyOf<typeof listConsumers>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const rows = await selectConsumers(database, { organizationId, filialId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(consumerOnWire), limit);
  return { consumers: page, hasMore };
}
