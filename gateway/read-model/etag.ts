/** Weak entity tags of views (design §4, "assignment"): `server_time` is left out, so an unchanged view keeps its tag. */
import { hash } from "node:crypto";

/** 120 bits of the view's SHA-256, so that different views get different tags: a shared tag would hide a change. */
export function etagOf(view: string): string {
  return `W/"${hash("sha256", view, "base64url").slice(0, 20)}"`;
}

/** Whether an `If-None-Match` header names this tag, by the weak comparison of RFC 9110 §13.1.2; lists and `*` work. */
export function matchesEtag(header: string, etag: string): boolean {
  if (header === etag) return true;
  if (header.trim() === "*") return true;
  const opaque = etag.slice(2);
  for (const match of header.matchAll(/(?:W\/)?("[^"]*")/g)) {
    if (match[1] === opaque) return true;
  }
  return false;
}
