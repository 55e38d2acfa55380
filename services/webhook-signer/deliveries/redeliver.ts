/** One more attempt, because the consumer asks for it: the same delivery, the same bytes, a fresh signature. */
import { nextDelivery } from "../../../machines/webhook-delivery.ts";
import { redeliverWebhook, TEST_EVENT_TYPE } from "../../bus/messages/webhook-deliveries.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { SignerDeps } from "../deps.ts";
import {
  deliveryStep,
  holdEndpointOf,
  insertRedelivery,
  lockForRedelivery,
  openForProbe,
  storeRequest,
} from "../sql/deliveries.ts";
import { deliveryOnWire } from "./delivery-wire.ts";

/**
 * Refuses with `not_found`, `conflict` (an owner's test), `delivery_lapsed` or `endpoint_unavailable`. Past an open breaker it
 * goes out as its probe.
 */
export async function redeliver(
  deps: Pick<SignerDeps, "database" | "wake">,
  { consumer, deliveryId, idempotencyKey }: RequestOf<typeof redeliverWebhook>,
): Promise<ReplyOf<typeof redeliverWebhook>> {
  const { consumerId, organizationId } = consumer;
  const delivery = await deps.database.begin(async (sql) => {
    const endpoint = await holdEndpointOf(sql, { consumerId, deliveryId });
    const row = await lockForRedelivery(sql, { consumerId, deliveryId });
    if (row === undefined) throw new RefusedError({ code: "not_found" });
    // Before the checks: what was answered once is answered again, whatever has become of the endpoint since.
    const isNew = idempotencyKey === undefined || (await insertRedelivery(sql, { deliveryId, idempotencyKey }));
    if (!isNew) return row;
    if (row.event_type === TEST_EVENT_TYPE) {
      const detail = "This is an owner's test; it is not sent again. The owner can test the endpoint once more.";
      throw new RefusedError({ code: "conflict", detail });
    }
    const event = { type: "REQUEST", atMs: row.now_ms, nextDueAtMs: row.next_due_at_ms } as const;
    const requested = nextDelivery(deliveryStep(row), event);
    if (requested === undefined) throw new RefusedError({ code: "delivery_lapsed" });
    if (endpoint === undefined || endpoint.status === "disabled") {
      throw new RefusedError({ code: "endpoint_unavailable" });
    }
    await openForProbe(sql, endpoint.endpoint_id);
    return (await storeRequest(sql, deliveryId, requested)) ?? row;
  });
  deps.wake([organizationId]);
  return { delivery: deliveryOnWire(delivery) };
}
