/** The log of certification artifacts of this installation: adds signed statements, and proves that it has them. */
import { existing } from "../../bus/refusals.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { SigningKey } from "../../runtime/signing-key.ts";
import * as sql from "../sql/certification-log.ts";
import { envelope } from "./dsse.ts";
import { inclusionProof, leafHash, rootHash } from "./merkle.ts";
import { checkpoint, logProof } from "./note.ts";

/** The log's name in its checkpoints. It never changes in this installation. */
export async function logName(database: Queryable): Promise<string> {
  const [row] = await database<[{ id: string }]>`select id from installation`;
  return `device-payments/${row.id}`;
}

/**
 * Signs each statement and adds it to the log, in their order, with the checkpoint of every size. Returns their indexes. The
 * transaction must hold the log's lock.
 */
export async function appendStatements(
  tx: Transaction,
  key: SigningKey,
  statements: readonly string[],
): Promise<readonly number[]> {
  await sql.addCertificationKey(tx, key);
  const name = await logName(tx);
  const leaves = await sql.listLeafHashes(tx);
  const indexes: number[] = [];
  for (const statement of statements) {
    const signed = envelope(key, Buffer.from(statement));
    const hash = leafHash(Buffer.from(signed));
    const leafIndex = leaves.push(hash) - 1;
    const root = rootHash(leaves);
    const note = checkpoint(
      { name, publicKey: key.publicKey, sign: (text) => key.sign(text) },
      { size: leaves.length, root },
    );
    await sql.insertLeaf(tx, {
      leafIndex,
      envelope: signed,
      leafHash: hash,
      rootHash: root,
      keyId: key.keyId,
      checkpoint: note,
    });
    indexes.push(leafIndex);
  }
  return indexes;
}

interface ProvenStatement {
  readonly envelope: string;
  readonly proof: string;
}

/** The statements at these indexes, each with its proof in the newest log. */
export async function provenStatements(
  database: Queryable,
  indexes: readonly number[],
): Promise<readonly ProvenStatement[]> {
  const newest = existing(await sql.findCheckpoint(database));
  const leaves = await sql.listLeafHashes(database, newest.size);
  const proven: ProvenStatement[] = [];
  for (const index of indexes) {
    const hashes = inclusionProof(leaves, index);
    proven.push({
      envelope: existing(await sql.findEnvelope(database, index)),
      proof: logProof({ index, hashes, checkpoint: newest.checkpoint }),
    });
  }
  return proven;
}
