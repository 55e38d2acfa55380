/** An owner's test: one event of its own type, sent now, by the guard and the signature that every delivery has. */
import { randomUUID } from "node:crypto";
import { TEST_EVENT_TYPE, type testEndpoint } from "../../bus/messages/webhooks.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { attemptOnWire, deliveryOnWire } from "../deliveries/delivery-wire.ts";
import { envelope } from "../deliveries/envelope.ts";
import type { SignerDeps } from "../deps.ts";
import { SIGNER_LIMITS, TARGET_LIMITS } from "../limits.ts";
import { openSecrets } from "../secrets/endpoint-secrets.ts";
import { outcomeOf, sendOnce } from "../sending/attempt.ts";
import { findOwn, listAttempts } from "../sql/deliveries.ts";
import { claimForTest, insertDeliveries, takeDeliveryIds } from "../sql/intake.ts";
import { writeOutcomes } from "../sql/outcomes.ts";
import { find } from "./change-endpoint.ts";

let underWay = 0;

/**
 * Past the breaker and whatever the endpoint's status is, so that an owner can see whether it would work again. A failure
 * is told, not repeated. Refuses with `permission_denied`, `not_found`, or `busy`.
 */
export async function test(
  deps: SignerDeps,
  { caller, endpointId }: RequestOf<typeof testEndpoint>,
): Promise<ReplyOf<typeof testEndpoint>> {
  const endpoint = await find(deps, caller, endpointId);
  if (underWay >= SIGNER_LIMITS.testsAtOnce)
    throw new RefusedError({ code: "busy", retryAfterMs: TARGET_LIMITS.attemptMs });
  underWay += 1;
  try {
    const { organizationId } = caller;
    const claimedBy = randomUUID();
    const claimed = await deps.database.begin(async (sql) => {
      const { consumer_id: consumerId } = endpoint;
      const [deliveryId = 0] = await takeDeliveryIds(sql, { consumerIds: [consumerId], count: 1 });
      const createdAt = new Date().toISOString();
      const eventType = TEST_EVENT_TYPE;
      const body = envelope({ deliveryId, eventType, createdAt, payload: { endpoint_id: endpointId } });
      const facts = { organizationId, consumerId, endpointId, eventId: null, eventType, body, lapsesAt: null };
      await insertDeliveries(sql, [{ deliveryId, ...facts, status: "pending" }]);
      return await claimForTest(sql, { deliveryId, claimedBy, claimMs: SIGNER_LIMITS.claimMs });
    });
    const secrets = (await openSecrets(deps, [endpointId])).get(endpointId) ?? [];
    const startedAt = new Date();
    const target = { url: endpoint.url, mode: endpoint.mode, secrets };
    const signal = AbortSignal.timeout(TARGET_LIMITS.attemptMs * 2);
    const result = await sendOnce(deps, target, { body: claimed.body, signal });
    const outcome = outcomeOf(claimed, { result, startedAt, random: 0 });
    const status = result.error === null ? "delivered" : "failed";
    const only = { ...outcome, status, retry_in_ms: null, is_manual: true } as const;
    await deps.database.begin((sql) => writeOutcomes(sql, { signerId: claimedBy, outcomes: [only] }));
    const { delivery_id: deliveryId } = claimed;
    const row = await findOwn(deps.database, { organizationId, deliveryId });
    const [attempt] = await listAttempts(deps.database, deliveryId, 1);
    if (row === undefined || attempt === undefined) throw new Error("A test that was just written is not there.");
    return { delivery: deliveryOnWire(row), attempt: attemptOnWire(attempt) };
  } finally {
    underWay -= 1;
  }
}
