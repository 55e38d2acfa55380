/** Credentials of consumers: `rc_` and 256 random bits. Each is shown once; its SHA-256 is what is kept (I9). */
import { createHash, randomBytes } from "node:crypto";
import { ROBOTICS_LIMITS } from "../limits.ts";

export function mintCredential(): { readonly credential: string; readonly hash: Buffer } {
  const credential = `rc_${randomBytes(ROBOTICS_LIMITS.credentialBytes).toString("base64url")}`;
  return { credential, hash: createHash("sha256").update(credential).digest() };
}
