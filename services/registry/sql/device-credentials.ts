import type { Transaction } from "../../db/pool.ts";

export async function insertCredential(
  sql: Transaction,
  credential: {
    readonly organizationId: number;
    readonly deviceId: number;
    readonly hash: Buffer;
    readonly scopes: readonly string[];
  },
): Promise<void> {
  await sql`
    insert into device_credentials (organization_id, device_id, credential_hash, scopes)
    values (${credential.organizationId}, ${credential.deviceId}, ${credential.hash}, ${[...credential.scopes]})`;
}

/** Revokes the device's credential and returns its hash in hex; empty when it has none. */
export async function revokeCredentials(sql: Transaction, deviceId: number): Promise<string[]> {
  const rows = await sql<{ hash: string }[]>`
    update device_credentials set revoked_at = now() where device_id = ${deviceId} and revoked_at is null
    returning encode(credential_hash, 'hex') as hash`;
  return rows.map((row) => row.hash);
}
