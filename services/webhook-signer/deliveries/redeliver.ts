/** One more attempt, because the consumer asks for it: the same delivery, the same bytes, a fresh signature. */
import type * as messages from "../../bus/messages/webhooks.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { SignerDeps } from "../deps.ts";
import { holdEndpointOf, insertRedelivery, lockForRedelivery, makeDue } from "../sql/deliveries.ts";
import { deliveryOnWire } from "./delivery-wire.ts";

/** Refuses with `not_found`, `delivery_lapsed` or `endpoint_unavailable`. What waits to be sent anyway is sent once. */
export async function redeliver(
  deps: Pick<SignerDeps, "database" | "wake">,
  { consumer, deliveryId, idempotencyKey }: RequestOf<typeof messages.redeliver>,
): Promise<ReplyOf<typeof messages.redeliver>> {
  const { consumerId, organizationId } = consumer;
  const delivery = await deps.database.begin(async (sql) => {
    const endpointStatus = await holdEndpointOf(sql, { consumerId, deliveryId });
    const row = await lockForRedelivery(sql, { consumerId, deliveryId });
    if (row === undefined) throw new RefusedError({ code: "not_found" });
    // Before the checks: what was answered once is answered again, whatever has become of the endpoint since.
    const isNew = idempotencyKey === undefined || (await insertRedelivery(sql, { deliveryId, idempotencyKey }));
    if (!isNew) return row;
    if (row.has_lapsed) throw new RefusedError({ code: "delivery_lapsed" });
    if (endpointStatus !== "active" && endpointStatus !== "paused") {
      throw new RefusedError({ code: "endpoint_unavailable" });
    }
    return (await makeDue(sql, deliveryId)) ?? row;
  });
  deps.wake([organizationId]);
  return { delivery: deliveryOnWire(delivery) };
}
