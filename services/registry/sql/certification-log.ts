/** The log of certification artifacts: leaves that never change, each with the checkpoint that it completes. */
import type { Queryable, Transaction } from "../../db/pool.ts";

/**
 * The advisory lock under which transactions add to the log one after another, over all processes and organizations.
 */
const LOG_LOCK = 4_711_000_003;

export async function lockCertificationLog(sql: Transaction): Promise<void> {
  await sql`select pg_advisory_xact_lock(${LOG_LOCK}::bigint)`;
}

/** The hashes of the first `size` leaves in their order, or of all leaves. */
export async function listLeafHashes(sql: Queryable, size?: number): Promise<Buffer[]> {
  const rows = await sql<{ leaf_hash: Buffer }[]>`
    select leaf_hash from certification_log where leaf_index < ${size ?? Number.MAX_SAFE_INTEGER} order by leaf_index`;
  return rows.map(({ leaf_hash: hash }) => hash);
}

interface NewLeaf {
  readonly leafIndex: number;
  readonly envelope: string;
  readonly leafHash: Uint8Array;
  readonly rootHash: Uint8Array;
  readonly keyId: string;
  readonly checkpoint: string;
}

export async function insertLeaf(sql: Transaction, leaf: NewLeaf): Promise<void> {
  const { leafIndex, envelope, leafHash, rootHash, keyId, checkpoint } = leaf;
  await sql`
    insert into certification_log (leaf_index, envelope, leaf_hash, root_hash, key_id, checkpoint)
    values (${leafIndex}, ${envelope}, ${leafHash}, ${rootHash}, ${keyId}, ${checkpoint})`;
}

export async function findEnvelope(sql: Queryable, leafIndex: number): Promise<string | undefined> {
  const [row] = await sql<{ envelope: string }[]>`
    select envelope from certification_log where leaf_index = ${leafIndex}`;
  return row?.envelope;
}

/** The checkpoint of the log at this size, or at its newest size. */
export async function findCheckpoint(
  sql: Queryable,
  size?: number,
): Promise<{ readonly size: number; readonly checkpoint: string } | undefined> {
  const [row] = await sql<{ size: number; checkpoint: string }[]>`
    select leaf_index + 1 as size, checkpoint from certification_log
    where ${size ?? null}::bigint is null or leaf_index = ${(size ?? 0) - 1}
    order by leaf_index desc limit 1`;
  return row;
}

export async function addCertificationKey(
  sql: Transaction,
  { keyId, publicKey }: { readonly keyId: string; readonly publicKey: Uint8Array },
): Promise<void> {
  await sql`
    insert into certification_keys (key_id, public_key) values (${keyId}, ${publicKey}) on conflict (key_id) do nothing`;
}

interface CertificationKeyRow {
  readonly key_id: string;
  readonly public_key: Buffer;
  readonly first_used_at: Date;
}

export async function listCertificationKeys(sql: Queryable): Promise<CertificationKeyRow[]> {
  return sql<CertificationKeyRow[]>`
    select key_id, public_key, first_used_at from certification_keys order by first_used_at, key_id`;
}
