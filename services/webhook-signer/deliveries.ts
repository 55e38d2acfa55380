/**
 * Webhook deliveries. An owner reads them newest first, a consumer in the order of the commits. Both can request one
 * more attempt.
 */
import { nextDelivery } from "../../machines/webhook-delivery.ts";
import { BOUNDS } from "../bus/bounds.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import * as messages from "../bus/messages/webhook-deliveries.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import type { SignerHandler } from "./deps.ts";
import { SIGNER_LIMITS } from "./limits.ts";
import * as sql from "./sql/deliveries.ts";

export function deliveryMessage(row: sql.DeliveryRow): messages.Delivery {
  return {
    deliveryId: row.delivery_id,
    eventId: row.event_id,
    consumerId: row.consumer_id,
    endpointId: row.endpoint_id,
    eventType: row.event_type,
    status: row.status,
    attempts: row.attempts,
    createdAtMs: row.created_at.getTime(),
    nextAttemptAtMs: row.due_at?.getTime() ?? null,
    deliveredAtMs: row.delivered_at?.getTime() ?? null,
    body: row.body,
  };
}

export function attemptMessage(row: sql.AttemptRow): messages.Attempt {
  return {
    attemptId: row.attempt_id,
    startedAtMs: row.started_at.getTime(),
    address: row.address,
    dnsMs: row.dns_ms,
    connectMs: row.connect_ms,
    tlsMs: row.tls_ms,
    firstByteMs: row.first_byte_ms,
    totalMs: row.total_ms,
    status: row.status,
    error: row.error,
    responseBody: row.response_body,
    truncated: row.is_truncated,
    manual: row.is_manual,
  };
}

export const listConsumerWebhookDeliveries: SignerHandler<typeof messages.listConsumerWebhookDeliveries> = async (
  { database },
  { consumer, eventType, status, sinceId = 0, limit = BOUNDS.listedUnlessAsked },
) => {
  const filters = { consumerId: consumer.consumerId, eventType, status };
  // One more than the limit shows whether there are more.
  const rows = await sql.listConsumerWebhookDeliveries(database, { ...filters, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(deliveryMessage), limit);
  return { deliveries: page, hasMore };
};

/** Refuses with `permission_denied`. */
export const listWebhookDeliveries: SignerHandler<typeof messages.listWebhookDeliveries> = async (
  { database },
  { caller, endpointId, consumerId, eventType, status, beforeId, limit = BOUNDS.listedUnlessAsked },
) => {
  requirePermission(caller, "organization.manage");
  const filters = { organizationId: caller.organizationId, endpointId, consumerId, eventType, status };
  const rows = await sql.listWebhookDeliveries(database, { ...filters, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(deliveryMessage), limit);
  return { deliveries: page, hasMore };
};

/** Refuses with `permission_denied` or `not_found`. */
export const getWebhookDelivery: SignerHandler<typeof messages.getWebhookDelivery> = async (
  { database },
  { caller, deliveryId },
) => {
  requirePermission(caller, "organization.manage");
  // One snapshot, because an attempt that ends between the two reads would be counted and not shown.
  return await database.begin("isolation level repeatable read read only", async (tx) => {
    const row = existing(await sql.getWebhookDelivery(tx, { organizationId: caller.organizationId, deliveryId }));
    const attempts = await sql.listAttempts(tx, deliveryId, SIGNER_LIMITS.attemptsShown);
    return { delivery: deliveryMessage(row), attempts: attempts.map(attemptMessage) };
  });
};

interface Redelivery {
  readonly consumerId: number;
  readonly organizationId: number;
  readonly deliveryId: number;
  readonly idempotencyKey: string | undefined;
}

/**
 * Requests one more attempt: the same delivery, the same bytes, a fresh signature. While the breaker is open, the
 * attempt is its probe. Refuses with `not_found`, `conflict` (an owner's test), `delivery_lapsed` or
 * `endpoint_unavailable`.
 */
async function redeliver(
  deps: Parameters<SignerHandler<typeof messages.redeliverWebhook>>[0],
  { consumerId, organizationId, deliveryId, idempotencyKey }: Redelivery,
): Promise<{ delivery: messages.Delivery }> {
  const delivery = await deps.database.begin(async (tx) => {
    const endpoint = await sql.lockEndpointOf(tx, { consumerId, deliveryId });
    const row = existing(await sql.lockForRedelivery(tx, { consumerId, deliveryId }));
    // Before the checks: a repetition gets the first answer, whatever has become of the endpoint since.
    if (!(await sql.insertRedelivery(tx, { deliveryId, idempotencyKey }))) return row;
    if (row.event_type === messages.TEST_EVENT_TYPE) {
      const detail = "This is an owner's test; it is not sent again. The owner can test the endpoint again.";
      throw new RefusedError({ code: "conflict", detail });
    }
    const event = { type: "REQUEST", atMs: row.now_ms, nextDueAtMs: row.next_due_at_ms } as const;
    const requested = nextDelivery(sql.deliveryStep(row), event);
    if (requested === undefined) throw new RefusedError({ code: "delivery_lapsed" });
    if (endpoint === undefined || endpoint.status === "disabled") {
      throw new RefusedError({ code: "endpoint_unavailable" });
    }
    await sql.openForProbe(tx, endpoint.endpoint_id);
    return await sql.redeliverWebhook(tx, deliveryId, requested);
  });
  deps.wake([organizationId]);
  return { delivery: deliveryMessage(delivery) };
}

export const redeliverWebhook: SignerHandler<typeof messages.redeliverWebhook> = async (
  deps,
  { consumer: { consumerId, organizationId }, deliveryId, idempotencyKey },
) => await redeliver(deps, { consumerId, organizationId, deliveryId, idempotencyKey });

/** Refuses also with `permission_denied`. */
export const resendWebhookDelivery: SignerHandler<typeof messages.resendWebhookDelivery> = async (
  deps,
  { caller, deliveryId, idempotencyKey },
) => {
  const { organizationId } = requirePermission(caller, "organization.manage");
  const row = existing(await sql.getWebhookDelivery(deps.database, { organizationId, deliveryId }));
  return await redeliver(deps, { consumerId: row.consumer_id, organizationId, deliveryId, idempotencyKey });
};
