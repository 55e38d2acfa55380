import { randomBytes } from "node:crypto";

/** What a browser is known by, in a cookie: 128 random bits, because a guess must not match. It opens nothing. */
export function mintBrowserToken(): string {
  return randomBytes(16).toString("base64url");
}
