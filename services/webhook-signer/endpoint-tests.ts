/** An owner's test: one event of a separate type, sent at once, with the guard and the signature of every delivery. */
import { CLOSED, disabledBy } from "../../machines/webhook-breaker.ts";
import { TEST_EVENT_TYPE } from "../bus/messages/webhook-deliveries.ts";
import type * as messages from "../bus/messages/webhook-endpoints.ts";
import type { ReplyOf } from "../bus/operation.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { currentRequestId } from "../runtime/log.ts";
import { attemptMessage, deliveryMessage } from "./deliveries.ts";
import type { SignerDeps, SignerHandler } from "./deps.ts";
import { findEndpoint } from "./endpoints.ts";
import { TARGET_LIMITS } from "./limits.ts";
import { attemptIdAt, outcomeOf, sendOnce } from "./sending/attempt.ts";
import { envelope, openSecrets } from "./signing.ts";
import { getWebhookDelivery, listAttempts } from "./sql/deliveries.ts";
import { type EndpointRow, findGeneration, resetBreaker } from "./sql/endpoints.ts";
import { insertDeliveries, takeDeliveryIds } from "./sql/intake.ts";
import { disableEndpoints, writeOutcomes } from "./sql/outcomes.ts";

/**
 * Sends a test also when the breaker is open, and with every status of the endpoint, so that an owner can see whether
 * the endpoint works again. A failed test is reported and not repeated. It changes nothing, except that 410 disables
 * the endpoint as for a delivery. A success counts like every other one. Refuses with `conflict` for a suspended
 * consumer, and with `busy` while this endpoint or too many others are tested.
 */
export const testWebhookEndpoint: SignerHandler<typeof messages.testWebhookEndpoint> = async (deps, request) => {
  const endpoint = await findEndpoint(deps.database, request);
  if (endpoint.consumer_status === "suspended") {
    throw new RefusedError({ code: "conflict", detail: "This consumer is suspended; nothing is sent to it." });
  }
  const test = { organizationId: request.caller.organizationId, endpointId: request.endpointId };
  if (!deps.tests.take(test)) throw new RefusedError({ code: "busy", retryAfterMs: TARGET_LIMITS.attemptMs });
  try {
    return await testOnce(deps, endpoint);
  } finally {
    deps.tests.release(test);
  }
};

async function testOnce(
  deps: SignerDeps,
  endpoint: EndpointRow,
): Promise<ReplyOf<typeof messages.testWebhookEndpoint>> {
  const { endpoint_id: endpointId, organization_id: organizationId, url, mode } = endpoint;
  const { database } = deps;
  const { deliveryId, body } = await insertTest(deps, endpoint);
  const secrets = (await openSecrets(deps, [endpointId])).get(endpointId) ?? [];
  // The test does not disable an endpoint that its owner activates during the test.
  const generation = await findGeneration(database, endpointId);
  const attemptId = attemptIdAt(deps.clock.nowMs());
  const signal = AbortSignal.timeout(TARGET_LIMITS.attemptMs * 2);
  const result = await sendOnce(deps, { url, mode, secrets }, { body, signal });
  if (result === undefined) throw new Error("A test was not over within twice an attempt's time.");
  const made = { delivery_id: deliveryId, attempts: 0, manual_attempts: 0, asked: 0, manual_of: "failed" } as const;
  const outcome = outcomeOf(made, { attemptId, result, random: 0 });
  const reason = disabledBy(CLOSED, { status: result.status, nowMs: deps.clock.nowMs() });
  const disabled = await database.begin(async (tx) => {
    const gone =
      reason === undefined || generation === undefined
        ? []
        : await disableEndpoints(tx, [{ endpoint_id: endpointId, generation, disabled_reason: reason }]);
    if (result.error === null) await resetBreaker(tx, endpointId);
    await writeOutcomes(tx, { outcomes: [outcome], endpoints: [] });
    return gone;
  });
  for (const row of disabled)
    deps.log.warn({ endpointId, reason: row.disabled_reason }, "a webhook endpoint is disabled");
  // The process that sends to the endpoint then drops its deliveries in hand, or reads the breaker again.
  if (disabled.length > 0 || result.error === null) deps.wake([organizationId]);
  const delivery = existing(await getWebhookDelivery(database, { organizationId, deliveryId }));
  const [attempt] = await listAttempts(database, deliveryId, 1);
  return { delivery: deliveryMessage(delivery), attempt: attemptMessage(existing(attempt)) };
}

/** Stores the test as `failed` until it is delivered, so that it is never due and no process sends it again. */
async function insertTest(
  { database, clock }: Pick<SignerDeps, "database" | "clock">,
  { endpoint_id: endpointId, organization_id: organizationId, consumer_id: consumerId }: EndpointRow,
): Promise<{ readonly deliveryId: number; readonly body: string }> {
  return await database.begin(async (tx) => {
    const [deliveryId = 0] = await takeDeliveryIds(tx, { consumerIds: [consumerId], count: 1 });
    const createdAt = new Date(clock.nowMs()).toISOString();
    const eventType = TEST_EVENT_TYPE;
    const body = envelope({ deliveryId, eventType, createdAt, payload: { endpoint_id: endpointId } });
    const facts = {
      organizationId,
      consumerId,
      endpointId,
      eventId: null,
      eventType,
      body,
      lapsesAt: null,
      requestId: currentRequestId(),
    };
    await insertDeliveries(tx, [{ ...facts, deliveryId, status: "failed" }]);
    return { deliveryId, body };
  });
}
