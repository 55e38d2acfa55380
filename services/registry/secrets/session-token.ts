import { randomBytes } from "node:crypto";
import { hashSecret } from "./secret-hash.ts";

/** A new session token, `dps_` and 256 random bits. Shown once; only the hash is kept. */
export function mintSessionToken(): { readonly token: string; readonly hash: Buffer } {
  const token = `dps_${randomBytes(32).toString("base64url")}`;
  return { token, hash: hashSecret(token) };
}
