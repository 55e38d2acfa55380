/** Deliveries and attempts as they leave this service. */
import type { Attempt, Delivery } from "../../bus/messages/webhook-deliveries.ts";
import type { AttemptRow, DeliveryRow } from "../sql/deliveries.ts";

export function deliveryOnWire(row: DeliveryRow): Delivery {
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

export function attemptOnWire(row: AttemptRow): Attempt {
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
