/**
 * Enrollment codes: ten characters of Crockford's base32, 50 bits, shown as XXXXX-XXXXX (design §4). A person types them,
 * so case, hyphens and spaces do not matter, O reads as 0, and I and L read as 1.
 */
import { createHash, createHmac, randomBytes } from "node:crypto";
import { REGISTRY_LIMITS } from "../limits.ts";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH = 10;
const WELL_FORMED = /^[0-9A-HJKMNP-TV-Z]{10}$/;
/** Hashed in place of what cannot be a code; no code has these characters, so it is never found. */
const IMPOSSIBLE = "!".repeat(LENGTH);

/** A new code in its canonical form, without the hyphen. The alphabet's size divides 256, so each character is fair. */
export function mintEnrollmentCode(): string {
  return Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

/** A code as it is shown to a person. */
export function showEnrollmentCode(code: string): string {
  return `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`;
}

/** The canonical form of what somebody typed, or undefined when it cannot be a code. */
export function readEnrollmentCode(typed: string): string | undefined {
  if (typed.length > REGISTRY_LIMITS.enrollmentCodeInputLength) return undefined;
  const code = typed.toUpperCase().replaceAll(/[\s-]/g, "").replaceAll("O", "0").replaceAll(/[IL]/g, "1");
  return WELL_FORMED.test(code) ? code : undefined;
}

/**
 * The hash under which a code is stored and looked for: HMAC-SHA-256 when the operator set a key, else SHA-256. What
 * cannot be a code is hashed just the same, so that it costs what an unknown one costs (I10).
 */
export function hashEnrollmentCode(typed: string, key: string | undefined): Buffer {
  const code = readEnrollmentCode(typed) ?? IMPOSSIBLE;
  return (key === undefined ? createHash("sha256") : createHmac("sha256", key)).update(code).digest();
}
