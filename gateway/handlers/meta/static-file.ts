/** Files that are read once at start and served from memory: the OpenAPI document and the API page. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { matchesEtag } from "../../polls/etag.ts";
import type { Handler } from "../context.ts";

/** A page may load and call nothing but this gateway; the API page styles elements in place. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Serves one file. It is read at the first request, so that nothing happens at import. */
export function staticFile(file: () => URL | string, contentType: string): Handler {
  let known: { readonly bytes: Uint8Array; readonly etag: string } | undefined;
  return (context) => {
    if (known === undefined) {
      const bytes = readFileSync(file());
      known = { bytes, etag: `W/"${hash("sha256", bytes, "base64url").slice(0, 20)}"` };
    }
    const headers = {
      "Cache-Control": "no-cache",
      ETag: known.etag,
      "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    };
    const sent = context.header("if-none-match");
    if (sent !== "" && matchesEtag(sent, known.etag)) return { status: 304, headers };
    return { status: 200, ready: known.bytes, headers: { ...headers, "Content-Type": contentType } };
  };
}
