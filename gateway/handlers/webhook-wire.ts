/** Webhook endpoints, deliveries and attempts for the wire. */
import type { z } from "zod";
import type { Attempt, Delivery, WebhookEndpoint } from "../../services/bus/messages/webhooks.ts";
import type {
  ownWebhookDeliverySchema,
  webhookAttemptSchema,
  webhookDeliverySchema,
  webhookEndpointSchema,
} from "../contract/webhook.ts";
import { toTimestamp } from "../http/shared-schemas.ts";

const toTimestampOrNull = (ms: number | null): string | null => (ms === null ? null : toTimestamp(ms));

export function endpointWire(endpoint: WebhookEndpoint): z.infer<typeof webhookEndpointSchema> {
  return {
    endpoint_id: endpoint.endpointId,
    consumer_id: endpoint.consumerId,
    filial_id: endpoint.filialId,
    url: endpoint.url,
    status: endpoint.status,
    disabled_reason: endpoint.disabledReason,
    open_until: toTimestampOrNull(endpoint.openUntilMs),
    consecutive_failures: endpoint.consecutiveFailures,
    last_success_at: toTimestampOrNull(endpoint.lastSuccessAtMs),
    last_failure_at: toTimestampOrNull(endpoint.lastFailureAtMs),
    secrets: endpoint.secrets.map(({ createdAtMs, expiresAtMs }) => ({
      created_at: toTimestamp(createdAtMs),
      expires_at: toTimestampOrNull(expiresAtMs),
    })),
    created_at: toTimestamp(endpoint.createdAtMs),
  };
}

type WireDelivery = z.infer<typeof webhookDeliverySchema>;

/**
 * What happened and when is taken out of the body that is sent, so that whoever reads it again reads what was sent. The
 * field names of a payload keep their order, so that the body can be made again byte for byte.
 */
export function deliveryWire(delivery: Delivery): WireDelivery {
  const { created_at, payload } = JSON.parse(delivery.body) as Pick<WireDelivery, "created_at" | "payload">;
  return {
    delivery_id: delivery.deliveryId,
    endpoint_id: delivery.endpointId,
    event_type: delivery.eventType,
    status: delivery.status,
    created_at,
    attempts: delivery.attempts,
    next_attempt_at: toTimestampOrNull(delivery.nextAttemptAtMs),
    delivered_at: toTimestampOrNull(delivery.deliveredAtMs),
    payload,
  };
}

export function ownDeliveryWire(delivery: Delivery): z.infer<typeof ownWebhookDeliverySchema> {
  return { ...deliveryWire(delivery), consumer_id: delivery.consumerId };
}

export function attemptWire(attempt: Attempt): z.infer<typeof webhookAttemptSchema> {
  return {
    attempt_id: attempt.attemptId,
    started_at: toTimestamp(attempt.startedAtMs),
    address: attempt.address,
    dns_ms: attempt.dnsMs,
    connect_ms: attempt.connectMs,
    tls_ms: attempt.tlsMs,
    first_byte_ms: attempt.firstByteMs,
    total_ms: attempt.totalMs,
    status: attempt.status,
    error: attempt.error,
    response_body: attempt.responseBody,
    truncated: attempt.truncated,
    manual: attempt.manual,
  };
}
