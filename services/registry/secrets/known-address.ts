import { createHash, createHmac } from "node:crypto";
import { addressBlock } from "../../bus/address-block.ts";
import { canonicalEmail } from "../sql/users.ts";

/**
 * Under what it is stored that an account has logged in from an address: HMAC-SHA-256 when the operator set a key, else
 * SHA-256. There are few addresses, so the key is what keeps a stolen backup from naming them.
 */
export function hashKnownAddress(
  place: { readonly email: string; readonly address: string },
  key: string | undefined,
): Buffer {
  const hash = key === undefined ? createHash("sha256") : createHmac("sha256", key);
  return hash.update(`known address\n${canonicalEmail(place.email)}\n${addressBlock(place.address)}`).digest();
}
