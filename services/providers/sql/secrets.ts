/** Secrets as they are stored: sealed. */
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { SealedSecret } from "../../runtime/keyring.ts";

export interface SecretRow {
  readonly secret_id: number;
  readonly config_id: number;
  readonly name: string;
  readonly key_id: string;
  readonly nonce: Uint8Array;
  readonly sealed: Uint8Array;
  readonly created_at: Date;
  readonly expires_at: Date | null;
}

/** The live secrets of these configs, the newest first. */
export async function listLiveSecrets(sql: Queryable, configIds: readonly number[]): Promise<SecretRow[]> {
  return sql<SecretRow[]>`
    select * from provider_secrets
    where config_id = any(${[...configIds]}::bigint[]) and (expires_at is null or expires_at > now())
    order by secret_id desc`;
}

export async function insertSecret(
  sql: Transaction,
  secret: SealedSecret & { readonly configId: number; readonly name: string },
): Promise<void> {
  await sql`
    insert into provider_secrets (config_id, name, key_id, nonce, sealed)
    values (${secret.configId}, ${secret.name}, ${secret.keyId}, ${secret.nonce}, ${secret.sealed})`;
}

/** The current secret is taken for `overlapMs` longer; one that was already being replaced ends now: two live at most. */
export async function expireSecrets(
  sql: Transaction,
  replaced: { readonly configId: number; readonly name: string; readonly overlapMs: number },
): Promise<void> {
  const { configId, name, overlapMs } = replaced;
  await sql`
    update provider_secrets
    set expires_at = case when expires_at is null then now() + ${overlapMs}::float8 * interval '1 ms' else now() end
    where config_id = ${configId} and name = ${name} and (expires_at is null or expires_at > now())`;
}

/** Up to `limit` secrets that another key than this one has sealed, held until the transaction ends. */
export async function lockSecretsOfOtherKeys(sql: Transaction, keyId: string, limit: number): Promise<SecretRow[]> {
  return sql<SecretRow[]>`
    select * from provider_secrets where key_id <> ${keyId} order by secret_id limit ${limit} for update`;
}

export async function resealSecret(sql: Transaction, secretId: number, secret: SealedSecret): Promise<void> {
  await sql`
    update provider_secrets set key_id = ${secret.keyId}, nonce = ${secret.nonce}, sealed = ${secret.sealed}
    where secret_id = ${secretId}`;
}
