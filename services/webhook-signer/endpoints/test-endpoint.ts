/** An owner's test: one event of its own type, sent now, by the guard and the signature that every delivery has. */

import { TEST_EVENT_TYPE } from "../../bus/messages/webhook-deliveries.ts";
import { type testWebhookEndpoint } from "../../bus/messages/webhook-endpoints.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { attemptOnWire, deliveryOnWire } from "../deliveries/delivery-wire.ts";
import { envelope } from "../deliveries/envelope.ts";
import type { SignerDeps } from "../deps.ts";
import { TARGET_LIMITS } from "../limits.ts";
import { openSecrets } from "../secrets/endpoint-secrets.ts";
import { attemptIdAt, outcomeOf, sendOnce } from "../sending/attempt.ts";
import { findOwn, listAttempts } from "../sql/deliveries.ts";
import { type EndpointRow, resetBreaker } from "../sql/endpoints.ts";
import { insertDeliveries, type NewDelivery, takeDeliveryIds } from "../sql/intake.ts";
import { writeOutcomes } from "../sql/outcomes.ts";
import { find } from "./change-endpoint.ts";
import { disableIfGone, findTested } from "./disable-gone.ts";

/**
 * Past the breaker and whatever the endpoint's status is, so that an owner can see whether it would work again. A failure
 * is told, not repeated, and changes nothing but for 410, which disables the endpoint as it does for a delivery; a success
 * is one like any other. Refuses with `permission_denied`, `not_found`, `conflict` (a suspended consumer), or `busy` while
 * the endpoint is being tested or too many others are.
 */
export async function test(
  deps: SignerDeps,
  { caller, endpointId }: RequestOf<typeof testWebhookEndpoint>,
): Promise<ReplyOf<typeof testWebhookEndpoint>> {
  const endpoint = await find(deps, caller, endpointId);
  if (endpoint.consumer_status === "suspended") {
    throw new RefusedError({ code: "conflict", detail: "This consumer is suspended; nothing is sent to it." });
  }
  const place = { organizationId: caller.organizationId, endpointId };
  if (!deps.tests.take(place)) {
    throw new RefusedError({ code: "busy", retryAfterMs: TARGET_LIMITS.attemptMs });
  }
  try {
    return await testOnce(deps, endpoint);
  } finally {
    deps.tests.give(place);
  }
}

async function testOnce(deps: SignerDeps, endpoint: EndpointRow): Promise<ReplyOf<typeof testWebhookEndpoint>> {
  const { endpoint_id: endpointId, organization_id: organizationId, url, mode } = endpoint;
  const { deliveryId, body } = await insertTest(deps, endpoint);
  const secrets = (await openSecrets(deps, [endpointId])).get(endpointId) ?? [];
  const tested = await findTested(deps.database, endpointId);
  const attemptId = attemptIdAt(deps.clock.nowMs());
  const signal = AbortSignal.timeout(TARGET_LIMITS.attemptMs * 2);
  const result = await sendOnce(deps, { url, mode, secrets }, { body, signal });
  if (result === undefined) throw new Error("A test was not over within twice an attempt's time.");
  // It does not wait for this attempt: a success counts, a failure leaves it as it was written.
  const made = { delivery_id: deliveryId, attempts: 0, manual_attempts: 0, asked: 0, manual_of: "failed" } as const;
  const outcome = outcomeOf(made, { attemptId, result, random: 0 });
  const disabled = await deps.database.begin(async (sql) => {
    const gone = tested === undefined ? undefined : await disableIfGone(sql, tested, result.status);
    if (result.error === null) await resetBreaker(sql, endpointId);
    await writeOutcomes(sql, { outcomes: [outcome], endpoints: [] });
    return gone;
  });
  if (disabled !== undefined) {
    deps.log.warn({ endpointId, reason: disabled.disabled_reason }, "a webhook endpoint is disabled");
  }
  // Whoever sends to it puts down what it has in hand, or forgets what it knew of its breaker.
  if (disabled !== undefined || result.error === null) {
    deps.wake([organizationId]);
  }
  const row = await findOwn(deps.database, { organizationId, deliveryId });
  const [attempt] = await listAttempts(deps.database, deliveryId, 1);
  if (row === undefined || attempt === undefined) throw new Error("A test that was just written is not there.");
  return { delivery: deliveryOnWire(row), attempt: attemptOnWire(attempt) };
}

/** As one that has failed, until it has not: it is never due, and nobody else sends it. */
async function insertTest(
  { database, clock }: Pick<SignerDeps, "database" | "clock">,
  endpoint: EndpointRow,
): Promise<{ readonly deliveryId: number; readonly body: string }> {
  const { endpoint_id: endpointId, organization_id: organizationId, consumer_id: consumerId } = endpoint;
  return await database.begin(async (sql) => {
    const [deliveryId = 0] = await takeDeliveryIds(sql, { consumerIds: [consumerId], count: 1 });
    const createdAt = new Date(clock.nowMs()).toISOString();
    const eventType = TEST_EVENT_TYPE;
    const body = envelope({ deliveryId, eventType, createdAt, payload: { endpoint_id: endpointId } });
    const facts = { organizationId, consumerId, endpointId, eventId: null, eventType, body, lapsesAt: null };
    const delivery: NewDelivery = { ...facts, deliveryId, status: "failed" };
    await insertDeliveries(sql, [delivery]);
    return { deliveryId, body };
  });
}
