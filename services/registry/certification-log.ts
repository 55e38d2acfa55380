/**
 * The public side of the log of certification artifacts: its keys, its newest checkpoint, and the proof that it only
 * grows.
 */
import type * as messages from "../bus/messages/certification-artifacts.ts";
import { invalidField } from "../bus/refusals.ts";
import { logName } from "./certification/log.ts";
import { consistencyProof } from "./certification/merkle.ts";
import { verifierKey } from "./certification/note.ts";
import type { RegistryHandler } from "./deps.ts";
import * as sql from "./sql/certification-log.ts";

/** A restored database is a log without the newest leaves, so a larger size may have existed. */
const NO_SUCH_SIZE =
  "The log does not have this size. Read its size now; after a restore it may be smaller than before.";

export const getCertificationLog: RegistryHandler<typeof messages.getCertificationLog> = async (deps) => {
  const name = await logName(deps.sql);
  const [newest, rows] = await Promise.all([sql.findCheckpoint(deps.sql), sql.listCertificationKeys(deps.sql)]);
  const keys = rows.map(({ key_id: keyId, public_key: publicKey, first_used_at: firstUsedAt }) => ({
    keyId,
    verifierKey: verifierKey({ name, publicKey }),
    firstUsedAtMs: firstUsedAt.getTime(),
  }));
  return { name, size: newest?.size ?? 0, checkpoint: newest?.checkpoint ?? null, keys };
};

export const getCertificationConsistency: RegistryHandler<typeof messages.getCertificationConsistency> = async (
  deps,
  { fromSize, toSize },
) => {
  if (fromSize > toSize) throw invalidField("/from", "does_not_fit", "Must not be larger than `to`.");
  const from = await sql.findCheckpoint(deps.sql, fromSize);
  const to = await sql.findCheckpoint(deps.sql, toSize);
  if (from === undefined) throw invalidField("/from", "too_large", NO_SUCH_SIZE);
  if (to === undefined) throw invalidField("/to", "too_large", NO_SUCH_SIZE);
  const leaves = await sql.listLeafHashes(deps.sql, toSize);
  const hashes = consistencyProof(leaves, fromSize).map((hash) => hash.toString("base64"));
  return { from: from.checkpoint, to: to.checkpoint, hashes };
};
