/** The secrets of people that the registry makes, and the hashes under which it stores secrets and addresses. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import { addressBlock } from "../bus/address-block.ts";
import { canonicalEmail } from "./sql/users.ts";

/**
 * SHA-256 of a secret with 256 random bits. Salt and stretching would add nothing: the secret cannot be guessed, and
 * the registry must find it by the hash alone (I9).
 */
export function hashSecret(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

/** A new session token, `dps_` and 256 random bits. Shown once; only the hash is stored. */
export function mintSessionToken(): { readonly token: string; readonly hash: Buffer } {
  const token = `dps_${randomBytes(32).toString("base64url")}`;
  return { token, hash: hashSecret(token) };
}

/** The token of a one-time link, `dpl_` and 256 random bits. Shown once; only the hash is stored. */
export function mintLinkToken(): { readonly token: string; readonly hash: Buffer } {
  const token = `dpl_${randomBytes(32).toString("base64url")}`;
  return { token, hash: hashSecret(token) };
}

/** What identifies a browser, in a cookie: 128 random bits, so that a guess does not match. It grants no access. */
export function mintBrowserToken(): string {
  return randomBytes(16).toString("base64url");
}

/** The first password of an organization's owner: 144 random bits as 24 characters, which a person can copy from one line. */
export function mintInitialPassword(): string {
  return randomBytes(18).toString("base64url");
}

/**
 * The hash under which the registry stores that an account has logged in from an address: HMAC-SHA-256 when the operator
 * set a key, else SHA-256. There are few addresses: without the key a stolen backup reveals them.
 */
export function hashKnownAddress(
  place: { readonly email: string; readonly address: string },
  key: string | undefined,
): Buffer {
  const hash = key === undefined ? createHash("sha256") : createHmac("sha256", key);
  return hash.update(`known address\n${canonicalEmail(place.email)}\n${addressBlock(place.address)}`).digest();
}
