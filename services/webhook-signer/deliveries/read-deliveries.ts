/** Reading deliveries again: by a consumer in the order of the commits, by the owner newest first. */
import { requirePermission } from "../../bus/access.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type {
  getWebhookDelivery,
  listConsumerWebhookDeliveries,
  listWebhookDeliveries,
} from "../../bus/messages/webhook-deliveries.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { SignerDeps } from "../deps.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { findOwn, listAfter, listAttempts, listBefore } from "../sql/deliveries.ts";
import { attemptOnWire, deliveryOnWire } from "./delivery-wire.ts";

export async function list(
  { database }: Pick<SignerDeps, "database">,
  {
    consumer,
    eventType,
    status,
    sinceId = 0,
    limit = BOUNDS.listedUnlessAsked,
  }: RequestOf<typeof listConsumerWebhookDeliveries>,
): Promise<ReplyOf<typeof listConsumerWebhookDeliveries>> {
  const { consumerId } = consumer;
  // One more than was asked for tells whether there are more.
  const rows = await listAfter(database, { consumerId, eventType, status, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(deliveryOnWire), limit);
  return { deliveries: page, hasMore };
}

/** Refuses with `permission_denied`. */
export async function listOwn(
  { database }: Pick<SignerDeps, "database">,
  request: RequestOf<typeof listWebhookDeliveries>,
): Promise<ReplyOf<typeof listWebhookDeliveries>> {
  const { caller, endpointId, consumerId, eventType, status, beforeId, limit = BOUNDS.listedUnlessAsked } = request;
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const filters = { endpointId, consumerId, eventType, status };
  const rows = await listBefore(database, { organizationId, ...filters, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(deliveryOnWire), limit);
  return { deliveries: page, hasMore };
}

/** Refuses with `permission_denied` or `not_found`. */
export async function getOwn(
  { database }: Pick<SignerDeps, "database">,
  { caller, deliveryId }: RequestOf<typeof getWebhookDelivery>,
): Promise<ReplyOf<typeof getWebhookDelivery>> {
  requirePermission(caller, "organization.manage");
  // At one moment, or an attempt that ends between the two would be counted and not shown.
  return await database.begin("isolation level repeatable read read only", async (sql) => {
    const row = await findOwn(sql, { organizationId: caller.organizationId, deliveryId });
    if (row === undefined) throw new RefusedError({ code: "not_found" });
    const attempts = await listAttempts(sql, deliveryId, SIGNER_LIMITS.attemptsShown);
    return { delivery: deliveryOnWire(row), attempts: attempts.map(attemptOnWire) };
  });
}
