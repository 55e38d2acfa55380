/**
 * The owner's webhook endpoints. Each operation refuses with `permission_denied`, and with `not_found` for another
 * organization's.
 */

import { type Caller, personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as messages from "../bus/messages/webhook-endpoints.ts";
import type { RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { createOnce } from "../db/creations.ts";
import type { Queryable, Transaction } from "../db/pool.ts";
import { recordRoboticsAction } from "../db/robotics-audit-log.ts";
import type { SignerDeps, SignerHandler } from "./deps.ts";
import { SIGNER_LIMITS, TARGET_LIMITS } from "./limits.ts";
import { loopbackRule } from "./sending/attempt.ts";
import { newSecret, secretPlace } from "./signing.ts";
import { endPending } from "./sql/deliveries.ts";
import * as sql from "./sql/endpoints.ts";
import { TARGET_REFUSAL_SENTENCES } from "./target/check-url.ts";

function endpointMessage(row: sql.EndpointRow, secrets: readonly sql.SecretRow[]): messages.WebhookEndpoint {
  return {
    endpointId: row.endpoint_id,
    consumerId: row.consumer_id,
    filialId: row.filial_id,
    url: row.url,
    status: row.status,
    disabledReason: row.disabled_reason,
    openUntilMs: row.open_until?.getTime() ?? null,
    consecutiveFailures: row.consecutive_failures,
    lastSuccessAtMs: row.last_success_at?.getTime() ?? null,
    lastFailureAtMs: row.last_failure_at?.getTime() ?? null,
    secrets: secrets
      .filter((secret) => secret.endpoint_id === row.endpoint_id)
      .map((secret) => ({
        createdAtMs: secret.created_at.getTime(),
        expiresAtMs: secret.expires_at?.getTime() ?? null,
      })),
    createdAtMs: row.created_at.getTime(),
  };
}

async function withSecrets(using: Queryable, rows: readonly sql.EndpointRow[]): Promise<messages.WebhookEndpoint[]> {
  const ids = rows.map((row) => row.endpoint_id);
  const secrets = ids.length === 0 ? [] : await sql.listLiveSecrets(using, ids);
  return rows.map((row) => endpointMessage(row, secrets));
}

async function withItsSecrets(using: Queryable, row: sql.EndpointRow): Promise<messages.WebhookEndpoint> {
  return endpointMessage(row, await sql.listLiveSecrets(using, [row.endpoint_id]));
}

export const listWebhookEndpoints: SignerHandler<typeof messages.listWebhookEndpoints> = async (
  { database },
  { caller, consumerId, sinceId, limit },
) => {
  const { organizationId } = requirePermission(caller, "organization.manage");
  // One more than the limit shows whether there are more.
  const rows = await sql.listWebhookEndpoints(database, { organizationId, consumerId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(await withSecrets(database, rows), limit);
  return { endpoints: page, hasMore };
};

export const getWebhookEndpoint: SignerHandler<typeof messages.getWebhookEndpoint> = async ({ database }, request) => ({
  endpoint: await withItsSecrets(database, await findEndpoint(database, request)),
});

/** An owner's endpoint. */
export async function findEndpoint(
  database: Queryable,
  { caller, endpointId }: RequestOf<typeof messages.getWebhookEndpoint>,
): Promise<sql.EndpointRow> {
  requirePermission(caller, "organization.manage");
  return existing(await sql.getWebhookEndpoint(database, { organizationId: caller.organizationId, endpointId }));
}

/**
 * Refuses with `webhook_target_refused`, with `conflict` beyond the consumer's number of endpoints, and with
 * `already_created`: the secret is shown once. A repetition gets `already_created` also when the address is refused by then.
 */
export const registerWebhookEndpoint: SignerHandler<typeof messages.registerWebhookEndpoint> = async (
  deps,
  { caller, consumerId, url: requestedUrl, creation },
) => {
  const { organizationId } = requirePermission(caller, "organization.manage");
  const mode = existing(await sql.findConsumerMode(deps.database, { organizationId, consumerId }), "consumer_id");
  const target = await checkTarget(deps, { url: requestedUrl, mode });
  const secret = newSecret();
  const create = async (tx: Transaction) => {
    const url = allowedUrl(target);
    const consumer = existing(await sql.lockConsumer(tx, { organizationId, consumerId }), "consumer_id");
    if (consumer.endpoints >= SIGNER_LIMITS.endpointsPerConsumer) {
      const detail = `A consumer has ${SIGNER_LIMITS.endpointsPerConsumer} endpoints at most; delete one first.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const { filial_id: filialId } = consumer;
    const endpointId = await sql.registerWebhookEndpoint(tx, { organizationId, consumerId, filialId, url });
    await sql.insertSecret(tx, { endpointId, ...deps.keyring.seal(secretPlace(endpointId), secret) });
    const data = { url, consumer_id: consumerId };
    await record(tx, { caller, endpointId, action: "webhook_endpoint_registered", data });
    const row = existing(await sql.getWebhookEndpoint(tx, { organizationId, endpointId }));
    return { endpoint: await withItsSecrets(tx, row), secret };
  };
  return await createOnce(deps.database, creation, { create, idOf: ({ endpoint }) => endpoint.endpointId });
};

/**
 * Pauses or activates an endpoint; its current status changes nothing. Refuses with `webhook_target_refused` to activate one
 * whose address is no longer public.
 */
export const changeWebhookEndpoint: SignerHandler<typeof messages.changeWebhookEndpoint> = async (
  deps,
  { caller, endpointId, status },
) => {
  const known = await findEndpoint(deps.database, { caller, endpointId });
  const target = status === "active" ? await checkTarget(deps, known) : undefined;
  const endpoint = await changing(deps, { caller, endpointId }, async (tx, row) => {
    if (row.status === status) return;
    if (target !== undefined) allowedUrl(target);
    if (status === "active") await sql.activateEndpoint(tx, endpointId);
    else await sql.pauseEndpoint(tx, endpointId);
    const action = `webhook_endpoint_${status === "active" ? "activated" : "paused"}`;
    await record(tx, { caller, endpointId, action });
  });
  deps.wake([caller.organizationId]);
  return { endpoint };
};

/**
 * The old and the new secret sign until the overlap is over. While there are two already, refuses with `conflict`, unless the
 * newer one was lost before the consumer received it (`replacesLost`): that one ends, and the old one keeps its end.
 */
export const rotateWebhookSecret: SignerHandler<typeof messages.rotateWebhookSecret> = async (
  deps,
  { caller, endpointId, overlapMs, replacesLost = false },
) => {
  const secret = newSecret();
  const endpoint = await changing(deps, { caller, endpointId }, async (tx) => {
    const live = await sql.listLiveSecrets(tx, [endpointId]);
    const isOverlapping = live.length >= SIGNER_LIMITS.liveSecrets;
    if (isOverlapping && overlapMs > 0 && !replacesLost) {
      const detail =
        "The secret before the last one still signs; wait until its overlap is over, rotate without overlap, or replace the last one with `replaces_lost` if the consumer has not received it.";
      throw new RefusedError({ code: "conflict", detail });
    }
    await sql.expireCurrentSecret(tx, endpointId, isOverlapping ? 0 : overlapMs);
    // The owner rotates without an overlap when a secret has leaked: no older one signs any more.
    if (overlapMs === 0) await sql.endOldSecrets(tx, endpointId);
    await sql.insertSecret(tx, { endpointId, ...deps.keyring.seal(secretPlace(endpointId), secret) });
    const data = { overlap_ms: overlapMs, ...(isOverlapping && replacesLost ? { replaced: "the lost one" } : {}) };
    await record(tx, { caller, endpointId, action: "webhook_secret_rotated", data });
  });
  // The process that sends to the endpoint signs with the new secret from now on.
  deps.wake([caller.organizationId]);
  return { endpoint, secret };
};

export const deleteWebhookEndpoint: SignerHandler<typeof messages.deleteWebhookEndpoint> = async (
  deps,
  { caller, endpointId },
) => {
  requirePermission(caller, "organization.manage");
  await deps.database.begin(async (tx) => {
    const { url } = existing(await sql.lockEndpoint(tx, { organizationId: caller.organizationId, endpointId }));
    await sql.deleteWebhookEndpoint(tx, endpointId);
    await endPending(tx, [endpointId]);
    await record(tx, { caller, endpointId, action: "webhook_endpoint_deleted", data: { url } });
  });
  // The process that sends to the endpoint drops its deliveries in hand.
  deps.wake([caller.organizationId]);
  return {};
};

/** Changes a locked endpoint, and returns it after the change. */
async function changing(
  { database }: Pick<SignerDeps, "database">,
  { caller, endpointId }: { readonly caller: Caller; readonly endpointId: number },
  work: (tx: Transaction, row: sql.EndpointRow) => Promise<void>,
): Promise<messages.WebhookEndpoint> {
  const { organizationId } = requirePermission(caller, "organization.manage");
  return await database.begin(async (tx) => {
    await work(tx, existing(await sql.lockEndpoint(tx, { organizationId, endpointId })));
    return await withItsSecrets(tx, existing(await sql.getWebhookEndpoint(tx, { organizationId, endpointId })));
  });
}

type CheckedTarget = { readonly url: string } | { readonly refused: RefusedError };

/**
 * Checks a target with the guard of every delivery, for an owner's request (I13). It takes seconds, so it comes before the
 * transaction. Only the transaction finds whether the request is a repetition, so it refuses, by `allowedUrl`.
 */
async function checkTarget(
  deps: Pick<SignerDeps, "sender" | "allowLoopback" | "log">,
  target: { readonly url: string; readonly mode: "test" | "live" },
): Promise<CheckedTarget> {
  const loopback = loopbackRule(deps, target.mode);
  const signal = AbortSignal.timeout(TARGET_LIMITS.dnsMs + TARGET_LIMITS.connectMs);
  const checked = await deps.sender.check(target.url, { loopback, signal });
  if (!checked.ok) {
    const reason = checked.error === "dns_failed" ? checked.error : checked.reason;
    const detail =
      reason === "dns_failed" ? "The host's address could not be found." : TARGET_REFUSAL_SENTENCES[reason];
    return { refused: new RefusedError({ code: "webhook_target_refused", reason, detail }) };
  }
  if (loopback === "allowed") {
    deps.log.warn({ host: checked.url.host }, "WEBHOOK_ALLOW_LOOPBACK lets this test endpoint be on this machine");
  }
  return { url: checked.url.href };
}

/** The URL that deliveries go to. Throws `webhook_target_refused` with the reason. */
function allowedUrl(target: CheckedTarget): string {
  if ("refused" in target) throw target.refused;
  return target.url;
}

interface AuditEntry {
  readonly caller: Caller;
  readonly endpointId: number;
  readonly action: string;
  readonly data?: Readonly<Record<string, string | number>>;
}

async function record(tx: Transaction, { caller, endpointId, action, data = {} }: AuditEntry): Promise<void> {
  const subject = { kind: "webhook_endpoint", id: endpointId } as const;
  const { organizationId } = caller;
  await recordRoboticsAction(tx, { organizationId, actor: personActor(caller), action, subject, data });
}
