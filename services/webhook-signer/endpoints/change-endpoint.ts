/** What an owner does to an endpoint: pause, activate, replace its secret, delete. */
import { requirePermission } from "../../bus/access.ts";
import type { Caller } from "../../bus/messages/caller.ts";
import type {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  rotateWebhookSecret,
  WebhookEndpoint,
} from "../../bus/messages/webhook-endpoints.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { Transaction } from "../../db/pool.ts";
import { personActor, recordRoboticsTrail } from "../../db/robotics-trail.ts";
import type { SignerDeps } from "../deps.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { newSecret, secretPlace } from "../secrets/endpoint-secrets.ts";
import * as endpoints from "../sql/endpoints.ts";
import { failPending } from "../sql/outcomes.ts";
import { endOldSecrets, expireCurrentSecret, insertSecret, listLiveSecrets } from "../sql/secrets.ts";
import { checkTarget } from "./check-target.ts";
import { endpointOnWire } from "./endpoint-wire.ts";

/** Refuses with `permission_denied`, `not_found`, or `webhook_target_refused` when a disabled or paused one is activated. */
export async function change(
  deps: SignerDeps,
  { caller, endpointId, status }: RequestOf<typeof changeWebhookEndpoint>,
): Promise<ReplyOf<typeof changeWebhookEndpoint>> {
  const known = await find(deps, caller, endpointId);
  if (status === "active") await checkTarget(deps, known);
  const endpoint = await changing(deps, { caller, endpointId }, async (sql, row) => {
    if (row.status === status) return;
    if (status === "active") await endpoints.activateEndpoint(sql, endpointId);
    else await endpoints.pauseEndpoint(sql, endpointId);
    await record(sql, {
      caller,
      endpointId,
      action: `webhook_endpoint_${status === "active" ? "activated" : "paused"}`,
    });
  });
  deps.wake([caller.organizationId]);
  return { endpoint };
}

/** Both secrets sign until the overlap is over. Refuses with `conflict` while there are two already. */
export async function rotate(
  deps: SignerDeps,
  { caller, endpointId, overlapMs }: RequestOf<typeof rotateWebhookSecret>,
): Promise<ReplyOf<typeof rotateWebhookSecret>> {
  const secret = newSecret();
  const endpoint = await changing(deps, { caller, endpointId }, async (sql) => {
    const live = await listLiveSecrets(sql, [endpointId]);
    if (live.length >= SIGNER_LIMITS.liveSecrets && overlapMs > 0) {
      const detail =
        "The secret before the last one still signs; wait until its overlap is over, or rotate without overlap.";
      throw new RefusedError({ code: "conflict", detail });
    }
    await expireCurrentSecret(sql, endpointId, overlapMs);
    // Without an overlap it is because a secret has leaked: nothing old signs any more.
    if (overlapMs === 0) await endOldSecrets(sql, endpointId);
    await insertSecret(sql, { endpointId, ...deps.keyring.seal(secretPlace(endpointId), secret) });
    const data = { overlap_ms: overlapMs };
    await record(sql, { caller, endpointId, action: "webhook_secret_rotated", data });
  });
  // Whoever sends to it signs with the new one from now on.
  deps.wake([caller.organizationId]);
  return { endpoint, secret };
}

export async function remove(
  deps: SignerDeps,
  { caller, endpointId }: RequestOf<typeof deleteWebhookEndpoint>,
): Promise<ReplyOf<typeof deleteWebhookEndpoint>> {
  requirePermission(caller, "organization.manage");
  await deps.database.begin(async (sql) => {
    const held = await endpoints.lockEndpoint(sql, { organizationId: caller.organizationId, endpointId });
    if (held === undefined) throw new RefusedError({ code: "not_found" });
    await endpoints.deleteEndpoint(sql, endpointId);
    await failPending(sql, [endpointId]);
    await record(sql, { caller, endpointId, action: "webhook_endpoint_deleted", data: { url: held.url } });
  });
  // Whoever sends to it puts down what it has in hand.
  deps.wake([caller.organizationId]);
  return {};
}

/** Throws `permission_denied` or `not_found`. */
export async function find(
  deps: Pick<SignerDeps, "database">,
  caller: Caller,
  endpointId: number,
): Promise<endpoints.EndpointRow> {
  requirePermission(caller, "organization.manage");
  const row = await endpoints.findEndpoint(deps.database, { organizationId: caller.organizationId, endpointId });
  if (row === undefined) throw new RefusedError({ code: "not_found" });
  return row;
}

/** Does something to an endpoint that is held, and tells how it is then. */
async function changing(
  { database }: Pick<SignerDeps, "database">,
  { caller, endpointId }: { readonly caller: Caller; readonly endpointId: number },
  work: (sql: Transaction, row: endpoints.EndpointRow) => Promise<void>,
): Promise<WebhookEndpoint> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  return await database.begin(async (sql) => {
    const held = await endpoints.lockEndpoint(sql, { organizationId, endpointId });
    if (held === undefined) throw new RefusedError({ code: "not_found" });
    await work(sql, held);
    const row = await endpoints.findEndpoint(sql, { organizationId, endpointId });
    if (row === undefined) throw new Error("An endpoint that is held is not there.");
    return await endpointOnWire(sql, row);
  });
}

async function record(
  sql: Transaction,
  entry: {
    readonly caller: Caller;
    readonly endpointId: number;
    readonly action: string;
    readonly data?: Readonly<Record<string, string | number>>;
  },
): Promise<void> {
  const { caller, endpointId, action, data = {} } = entry;
  const subject = { kind: "webhook_endpoint", id: endpointId } as const;
  const { organizationId } = caller;
  await recordRoboticsTrail(sql, { organizationId, actor: personActor(caller), action, subject, data });
}
