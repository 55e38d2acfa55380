/**
 * All registries need the same ENROLLMENT_CODE_KEY: a code whose hash was made with another key is unknown. So the database has
 * the id of the key.
 */
import { createHmac } from "node:crypto";
import type { Queryable } from "../db/pool.ts";
import { UserError } from "../runtime/user-error.ts";
import { storeCodeKeyId } from "./sql/code-key.ts";

const WITHOUT_KEY = "none";

/** At the start. Throws UserError `enrollment_code_key_differs` when the registries of the database use another key, or none. */
export async function requireSharedCodeKey(database: Queryable, key: string | undefined): Promise<void> {
  const keyId = key === undefined ? WITHOUT_KEY : keyIdOf(key);
  if ((await storeCodeKeyId(database, keyId)) === keyId) return;
  const sentence =
    'ENROLLMENT_CODE_KEY differs from the one that the registries of this database use: set the same one everywhere; to change it, or where it is lost, follow "Change a secret" in docs/operations.md.';
  throw new UserError(sentence, { code: "enrollment_code_key_differs" });
}

/** Reveals nothing about a random key. It is no hash of a code or of an address. */
const keyIdOf = (key: string): string => createHmac("sha256", key).update("key id").digest("hex").slice(0, 16);
