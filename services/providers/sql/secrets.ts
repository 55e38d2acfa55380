/** The secrets of provider configs. All of them are stored sealed. */
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { SealedSecret } from "../../runtime/keyring.ts";

interface SecretRow {
  readonly secret_id: number;
  readonly config_id: number;
  readonly name: string;
  readonly key_id: string;
  readonly nonce: Uint8Array;
  readonly sealed: Uint8Array;
  readonly created_at: Date;
  readonly expires_at: Date | null;
}

/** The live secrets of these configs, newest first. */
export async function listLiveSecrets(sql: Queryable, configIds: readonly number[]): Promise<SecretRow[]> {
  return sql<SecretRow[]>`
    select * from provider_secrets
    where config_id = any(${[...configIds]}::bigint[]) and (expires_at is null or expires_at > now())
    order by secret_id desc`;
}

/** First key of the advisory lock of an organization: two transactions cannot store one secret in two configs at once. */
const SECRETS_LOCK_CLASS = 0x5ec2;

/**
 * Every secret of this name that another config of the organization has or had. No transaction adds one until this
 * transaction ends.
 */
export async function listSecretsOfOthers(
  sql: Transaction,
  of: { readonly organizationId: number; readonly configId: number; readonly name: string },
): Promise<SecretRow[]> {
  await sql`select pg_advisory_xact_lock(${SECRETS_LOCK_CLASS}, hashint8(${of.organizationId}))`;
  return sql<SecretRow[]>`
    select s.* from provider_secrets s join provider_configs c using (config_id)
    where c.organization_id = ${of.organizationId} and s.config_id <> ${of.configId} and s.name = ${of.name}
    order by s.secret_id`;
}

/** First key of the advisory lock of a config: one transaction at a time replaces its secret. */
const ROTATION_LOCK_CLASS = 0x5ec3;

/** Locks the replacement of the config's secret until the transaction ends; false when another transaction has the lock. */
export async function lockRotation(sql: Transaction, configId: number): Promise<boolean> {
  const [row] = await sql<[{ is_held: boolean }]>`
    select pg_try_advisory_xact_lock(${ROTATION_LOCK_CLASS}, hashint8(${configId})) as is_held`;
  return row.is_held;
}

export async function insertSecret(
  sql: Transaction,
  secret: SealedSecret & { readonly configId: number; readonly name: string },
): Promise<void> {
  await sql`
    insert into provider_secrets (config_id, name, key_id, nonce, sealed)
    values (${secret.configId}, ${secret.name}, ${secret.keyId}, ${secret.nonce}, ${secret.sealed})`;
}

/**
 * The older secrets expire after `overlapMs` at the latest. All of them stay valid until then: when the answers of several
 * rotations are lost, the provider still signs with the oldest one.
 */
export async function expireSecrets(
  sql: Transaction,
  replaced: { readonly configId: number; readonly name: string; readonly overlapMs: number },
): Promise<void> {
  const { configId, name, overlapMs } = replaced;
  await sql`
    update provider_secrets
    set expires_at = least(expires_at, now() + ${overlapMs}::float8 * interval '1 ms')
    where config_id = ${configId} and name = ${name} and (expires_at is null or expires_at > now())`;
}

/** Up to `limit` secrets that are sealed with another key; their rows stay locked until the transaction ends. */
export async function lockSecretsOfOtherKeys(sql: Transaction, keyId: string, limit: number): Promise<SecretRow[]> {
  return sql<SecretRow[]>`
    select * from provider_secrets where key_id <> ${keyId} order by secret_id limit ${limit} for update`;
}

export async function resealSecret(sql: Transaction, secretId: number, secret: SealedSecret): Promise<void> {
  await sql`
    update provider_secrets set key_id = ${secret.keyId}, nonce = ${secret.nonce}, sealed = ${secret.sealed}
    where secret_id = ${secretId}`;
}
