/** Endpoints as they leave this service. */
import type { WebhookEndpoint } from "../../bus/messages/webhook-endpoints.ts";
import type { Queryable } from "../../db/pool.ts";
import type { EndpointRow } from "../sql/endpoints.ts";
import { listLiveSecrets, type SecretRow } from "../sql/secrets.ts";

export async function endpointsOnWire(
  sql: Queryable,
  rows: readonly EndpointRow[],
): Promise<readonly WebhookEndpoint[]> {
  const ids = rows.map((row) => row.endpoint_id);
  const secrets = ids.length === 0 ? [] : await listLiveSecrets(sql, ids);
  return rows.map((row) => onWire(row, secrets));
}

export async function endpointOnWire(sql: Queryable, row: EndpointRow): Promise<WebhookEndpoint> {
  return onWire(row, await listLiveSecrets(sql, [row.endpoint_id]));
}

function onWire(row: EndpointRow, secrets: readonly SecretRow[]): WebhookEndpoint {
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
