/**
 * Endpoints and their sealed secrets. Owners' requests name the organization, so an endpoint of another organization is
 * not found.
 */
import type { Database, Queryable, Transaction } from "../../db/pool.ts";
import type { SealedSecret } from "../../runtime/keyring.ts";

export interface EndpointRow {
  readonly endpoint_id: number;
  readonly organization_id: number;
  readonly consumer_id: number;
  readonly filial_id: number;
  readonly mode: "test" | "live";
  readonly consumer_status: "active" | "suspended";
  readonly url: string;
  readonly status: "active" | "paused" | "disabled";
  readonly disabled_reason: "gone" | "failing" | null;
  readonly consecutive_failures: number;
  readonly open_until: Date | null;
  readonly last_success_at: Date | null;
  readonly last_failure_at: Date | null;
  readonly created_at: Date;
}

interface EndpointKey {
  readonly organizationId: number;
  readonly endpointId: number;
}

const columns = (sql: Queryable) => sql`
  e.endpoint_id, e.organization_id, e.consumer_id, e.filial_id, c.mode, c.status as consumer_status, e.url, e.status, e.disabled_reason,
  e.consecutive_failures, e.open_until, e.last_success_at, e.last_failure_at, e.created_at`;

export async function getWebhookEndpoint(
  sql: Queryable,
  { organizationId, endpointId }: EndpointKey,
  lock = sql``,
): Promise<EndpointRow | undefined> {
  const [row] = await sql<EndpointRow[]>`
    select ${columns(sql)} from webhook_endpoints e join robotics_consumers c using (consumer_id)
    where e.organization_id = ${organizationId} and e.endpoint_id = ${endpointId} and e.deleted_at is null ${lock}`;
  return row;
}

/**
 * The endpoint, locked until the transaction ends: rotations and changes of one endpoint run one after another, and no other
 * transaction stores a delivery to it meanwhile.
 */
export const lockEndpoint = async (tx: Transaction, key: EndpointKey): Promise<EndpointRow | undefined> =>
  await getWebhookEndpoint(tx, key, tx`for update of e`);

interface EndpointPage {
  readonly organizationId: number;
  readonly consumerId: number | undefined;
  readonly sinceId: number;
  readonly limit: number;
}

export async function listWebhookEndpoints(sql: Queryable, page: EndpointPage): Promise<readonly EndpointRow[]> {
  const ofConsumer = page.consumerId === undefined ? sql`` : sql`and e.consumer_id = ${page.consumerId}`;
  return await sql<EndpointRow[]>`
    select ${columns(sql)} from webhook_endpoints e join robotics_consumers c using (consumer_id)
    where e.organization_id = ${page.organizationId} and e.deleted_at is null ${ofConsumer}
      and e.endpoint_id > ${page.sinceId}
    order by e.endpoint_id limit ${page.limit}`;
}

interface OwnedConsumerRow {
  readonly consumer_id: number;
  readonly filial_id: number;
  readonly mode: "test" | "live";
  readonly endpoints: number;
}

/**
 * The consumer of a new endpoint, locked, and how many endpoints it has: of two registrations at once the second counts
 * the first.
 */
export async function lockConsumer(
  sql: Transaction,
  { organizationId, consumerId }: { readonly organizationId: number; readonly consumerId: number },
): Promise<OwnedConsumerRow | undefined> {
  const [row] = await sql<Omit<OwnedConsumerRow, "endpoints">[]>`
    select consumer_id, filial_id, mode from robotics_consumers
    where organization_id = ${organizationId} and consumer_id = ${consumerId} for no key update`;
  if (row === undefined) return undefined;
  const [counted] = await sql<[{ endpoints: number }]>`
    select count(*)::int as endpoints from webhook_endpoints where consumer_id = ${consumerId} and deleted_at is null`;
  return { ...row, endpoints: counted.endpoints };
}

/** The consumer's mode, without a lock; undefined when there is no such consumer. */
export async function findConsumerMode(
  sql: Queryable,
  { organizationId, consumerId }: { readonly organizationId: number; readonly consumerId: number },
): Promise<"test" | "live" | undefined> {
  const [row] = await sql<{ mode: "test" | "live" }[]>`
    select mode from robotics_consumers where organization_id = ${organizationId} and consumer_id = ${consumerId}`;
  return row?.mode;
}

export async function registerWebhookEndpoint(
  sql: Transaction,
  endpoint: {
    readonly organizationId: number;
    readonly consumerId: number;
    readonly filialId: number;
    readonly url: string;
  },
): Promise<number> {
  const [row] = await sql<[{ endpoint_id: number }]>`
    insert into webhook_endpoints (organization_id, consumer_id, filial_id, url)
    values (${endpoint.organizationId}, ${endpoint.consumerId}, ${endpoint.filialId}, ${endpoint.url})
    returning endpoint_id`;
  return row.endpoint_id;
}

export async function pauseEndpoint(sql: Transaction, endpointId: number): Promise<void> {
  await sql`
    update webhook_endpoints set status = 'paused', disabled_reason = null, generation = generation + 1
    where endpoint_id = ${endpointId}`;
}

/** Activates the endpoint and resets its breaker. */
export async function activateEndpoint(sql: Transaction, endpointId: number): Promise<void> {
  await sql`
    update webhook_endpoints set status = 'active', disabled_reason = null, generation = generation + 1,
      consecutive_failures = 0, times_opened = 0, open_until = null, failing_since = null, failures_since_success = 0
    where endpoint_id = ${endpointId}`;
}

/**
 * Resets the breaker after a success outside the schedule. The new generation makes the process that sends to it do the
 * same.
 */
export async function resetBreaker(sql: Queryable, endpointId: number): Promise<void> {
  await sql`
    update webhook_endpoints set generation = generation + 1, consecutive_failures = 0, times_opened = 0,
      open_until = null, failing_since = null, failures_since_success = 0, last_success_at = now()
    where endpoint_id = ${endpointId} and deleted_at is null`;
}

/** The generation; undefined when the endpoint is deleted. Pausing, activating, resetting and deleting increase it. */
export async function findGeneration(sql: Queryable, endpointId: number): Promise<number | undefined> {
  const [row] = await sql<{ generation: number }[]>`
    select generation from webhook_endpoints where endpoint_id = ${endpointId} and deleted_at is null`;
  return row?.generation;
}

/** Deletes the endpoint and its secrets. Its deliveries stay readable. */
export async function deleteWebhookEndpoint(sql: Transaction, endpointId: number): Promise<void> {
  await sql`
    update webhook_endpoints set deleted_at = now(), generation = generation + 1 where endpoint_id = ${endpointId}`;
  await sql`delete from webhook_secrets where endpoint_id = ${endpointId}`;
}

export interface SecretRow {
  readonly secret_id: number;
  readonly endpoint_id: number;
  readonly key_id: string;
  readonly nonce: Uint8Array;
  readonly sealed: Uint8Array;
  readonly created_at: Date;
  readonly expires_at: Date | null;
}

/** The secrets that sign now, the newest of each endpoint first. */
export async function listLiveSecrets(sql: Queryable, endpointIds: readonly number[]): Promise<readonly SecretRow[]> {
  return await sql<SecretRow[]>`
    select secret_id, endpoint_id, key_id, nonce, sealed, created_at, expires_at from webhook_secrets
    where endpoint_id = any(${[...endpointIds]}::bigint[]) and (expires_at is null or expires_at > now())
    order by endpoint_id, secret_id desc`;
}

export async function insertSecret(
  sql: Transaction,
  { endpointId, keyId, nonce, sealed }: SealedSecret & { readonly endpointId: number },
): Promise<void> {
  await sql`
    insert into webhook_secrets (endpoint_id, key_id, nonce, sealed)
    values (${endpointId}, ${keyId}, ${nonce}, ${sealed})`;
}

/** Lets the current secret sign for `overlapMs` more, beside its successor. */
export async function expireCurrentSecret(sql: Transaction, endpointId: number, overlapMs: number): Promise<void> {
  await sql`
    update webhook_secrets set expires_at = now() + ${overlapMs}::float8 * interval '1 millisecond'
    where endpoint_id = ${endpointId} and expires_at is null`;
}

/** Expires the secrets that still overlap with their successor now. */
export async function endOldSecrets(sql: Transaction, endpointId: number): Promise<void> {
  await sql`
    update webhook_secrets set expires_at = now()
    where endpoint_id = ${endpointId} and expires_at is not null and expires_at > now()`;
}

/** Up to `limit` secrets that another key has sealed, locked. */
export async function lockSecretsOfOtherKeys(
  sql: Transaction,
  keyId: string,
  limit: number,
): Promise<readonly SecretRow[]> {
  return await sql<SecretRow[]>`
    select secret_id, endpoint_id, key_id, nonce, sealed, created_at, expires_at from webhook_secrets
    where key_id <> ${keyId} order by secret_id limit ${limit} for update skip locked`;
}

export async function resealSecret(sql: Transaction, secretId: number, sealed: SealedSecret): Promise<void> {
  await sql`
    update webhook_secrets set key_id = ${sealed.keyId}, nonce = ${sealed.nonce}, sealed = ${sealed.sealed}
    where secret_id = ${secretId}`;
}

/** Deletes up to `limit` expired secrets; returns how many. */
export async function deleteExpiredSecrets(sql: Database, limit: number): Promise<number> {
  const result = await sql`
    delete from webhook_secrets where secret_id in (
      select secret_id from webhook_secrets where expires_at <= now() limit ${limit})`;
  return result.count;
}
