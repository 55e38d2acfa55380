/** The endpoints' secrets, sealed. */
import type { Database, Queryable, Transaction } from "../../db/pool.ts";
import type { SealedSecret } from "../../runtime/keyring.ts";

export interface SecretRow {
  readonly secret_id: number;
  readonly endpoint_id: number;
  readonly key_id: string;
  readonly nonce: Uint8Array;
  readonly sealed: Uint8Array;
  readonly created_at: Date;
  readonly expires_at: Date | null;
}

/** Those that sign now, the newest of each endpoint first. */
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

/** The current secret signs for this long beside the one that takes its place. */
export async function expireCurrentSecret(sql: Transaction, endpointId: number, overlapMs: number): Promise<void> {
  await sql`
    update webhook_secrets set expires_at = now() + ${overlapMs}::float8 * interval '1 millisecond'
    where endpoint_id = ${endpointId} and expires_at is null`;
}

/** Those whose overlap is not over end now. */
export async function endOldSecrets(sql: Transaction, endpointId: number): Promise<void> {
  await sql`
    update webhook_secrets set expires_at = now()
    where endpoint_id = ${endpointId} and expires_at is not null and expires_at > now()`;
}

/** Up to `limit` that another key has sealed. */
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

/** Nothing signs with them any more. */
export async function deleteExpiredSecrets(sql: Database, limit: number): Promise<number> {
  const result = await sql`
    delete from webhook_secrets where secret_id in (
      select secret_id from webhook_secrets where expires_at <= now() limit ${limit})`;
  return result.count;
}
