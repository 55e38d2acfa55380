/** A new endpoint with its first secret, which is shown this once. */
import { requirePermission } from "../../bus/access.ts";
import type { registerWebhookEndpoint } from "../../bus/messages/webhook-endpoints.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { personActor, recordRoboticsTrail } from "../../db/robotics-trail.ts";
import type { SignerDeps } from "../deps.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { newSecret, secretPlace } from "../secrets/endpoint-secrets.ts";
import * as endpoints from "../sql/endpoints.ts";
import { insertSecret } from "../sql/secrets.ts";
import { checkTarget } from "./check-target.ts";
import { endpointOnWire } from "./endpoint-wire.ts";

/** Refuses with `permission_denied`, `not_found`, `webhook_target_refused`, or `conflict` beyond the consumer's number. */
export async function register(
  deps: SignerDeps,
  { caller, consumerId, url: given }: RequestOf<typeof registerWebhookEndpoint>,
): Promise<ReplyOf<typeof registerWebhookEndpoint>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const mode = await endpoints.findConsumerMode(deps.database, { organizationId, consumerId });
  if (mode === undefined) throw new RefusedError({ code: "not_found" });
  const url = await checkTarget(deps, { url: given, mode });
  const secret = newSecret();
  return await deps.database.begin(async (sql) => {
    const consumer = await endpoints.lockConsumer(sql, { organizationId, consumerId });
    if (consumer === undefined) throw new RefusedError({ code: "not_found" });
    if (consumer.endpoints >= SIGNER_LIMITS.endpointsPerConsumer) {
      const detail = `A consumer has ${SIGNER_LIMITS.endpointsPerConsumer} endpoints at most; delete one first.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const { filial_id: filialId } = consumer;
    const endpointId = await endpoints.insertEndpoint(sql, { organizationId, consumerId, filialId, url });
    await insertSecret(sql, { endpointId, ...deps.keyring.seal(secretPlace(endpointId), secret) });
    const subject = { kind: "webhook_endpoint", id: endpointId } as const;
    const data = { url, consumer_id: consumerId };
    const action = "webhook_endpoint_registered";
    await recordRoboticsTrail(sql, { organizationId, actor: personActor(caller), action, subject, data });
    const row = await endpoints.findEndpoint(sql, { organizationId, endpointId });
    if (row === undefined) throw new Error("An endpoint that was just written is not there.");
    return { endpoint: await endpointOnWire(sql, row), secret };
  });
}
