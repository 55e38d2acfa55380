import { createHash } from "node:crypto";

/**
 * SHA-256 of a secret with 256 random bits: without salt or stretching, because nobody can guess it, and because it must
 * be found again by its hash alone (I9).
 */
export function hashSecret(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
