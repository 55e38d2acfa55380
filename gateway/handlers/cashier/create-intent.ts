/** Picks a route for an order: the collection begins. */
import type { z } from "zod";
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import type { createIntentBodySchema } from "../../contract/intent.ts";
import { sessionCommandId } from "../../http/command-id.ts";
import { created, Refusal, type SessionHandler } from "../../http/handler-context.ts";
import { cashierActor, ownStation } from "../../http/own-station.ts";
import { spokenOf } from "./intent-reply.ts";
import { createdIntentWire } from "./intent-wire.ts";

type CreateIntentBody = z.infer<typeof createIntentBodySchema>;

/**
 * Refusals: `lease_required`, `station_leased`, `collection_active`, `route_not_offered` with the `reason`,
 * `money_may_have_moved` with `reason` and `earlier_intent_id`, `not_found` for the order, `order_changed` meanwhile, `order_already_paid`,
 * `order_voided`, `amount_not_collectable`, `idempotency_key_reused`.
 */
export const createIntent: SessionHandler<CreateIntentBody> = async (context) => {
  const { body, deps } = context;
  const { stationId } = await ownStation(context);
  const response = await deps.bus
    .command(stationId, {
      commandId: sessionCommandId(context, "intent_create", stationId),
      actor: cashierActor(context),
      command: {
        type: "intent_create",
        route: body.route,
        orderId: body.order_id,
        deviceId: body.device_id,
        lifetimeMs: body.lifetime_seconds === undefined ? undefined : body.lifetime_seconds * 1_000,
        confirmsMoneyMayHaveMoved: body.confirms_money_may_have_moved,
      },
    })
    .catch(withoutSettlement);
  const intent = spokenOf(response);
  if (!wasAskedFor(intent, body)) throw new Refusal("idempotency_key_reused");
  return created(createdIntentWire(intent));
};

/** `order_unknown` is what the payment seam says, after a guest may have paid; here nothing can have moved yet. */
function withoutSettlement(error: unknown): never {
  if (!(error instanceof Refusal) || error.code !== "order_unknown") throw error;
  throw new Refusal("not_found", { detail: "There is no such order at this station." });
}

/**
 * A repeated key answers with the intent of the first time. All that a body determines is in that intent, so another
 * body under the same key shows here, and no copy of bodies has to be kept for it.
 */
function wasAskedFor(intent: PaymentIntent, body: CreateIntentBody): boolean {
  if (intent.orderId !== body.order_id || intent.route !== body.route) return false;
  if (body.device_id !== undefined && body.route === "smart_pos" && intent.deviceId !== body.device_id) return false;
  const lifetimeMs = intent.expiresAtMs - intent.createdAtMs;
  return body.lifetime_seconds === undefined || lifetimeMs === body.lifetime_seconds * 1_000;
}
