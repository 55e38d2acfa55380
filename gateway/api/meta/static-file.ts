/**
 * Files that the gateway serves from memory: the OpenAPI and AsyncAPI documents and the API page. It reads and compresses each
 * at the first request, so that the import does nothing and the start is fast.
 */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Handler } from "../../http/handler-context.ts";
import { matchesEtag } from "../../read-model/etag.ts";

/** The two codings that every browser and most programs know. */
export type ContentCoding = "br" | "gzip";

/** A page may load and call only this gateway. The API page has inline styles. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A browser keeps a file for five minutes. After that it gets the file of a new gateway version. */
const CACHE_CONTROL = "public, max-age=300";

/** Takes 50 ms for the OpenAPI document. The best quality takes seconds and saves a fifth more. */
const BROTLI_QUALITY = 5;

const COMPRESS: Readonly<Record<ContentCoding, (bytes: Uint8Array) => Promise<Uint8Array>>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: (bytes) => promisify(gzip)(bytes),
};

interface StaticFile {
  readonly bytes: Uint8Array;
  readonly etag: string;
  /** Each compression runs once, for all requests that wait for it. */
  readonly compressed: Map<ContentCoding, Promise<Uint8Array>>;
}

export function staticFile(file: () => URL | string, contentType: string): Handler {
  let known: StaticFile | undefined;
  return async (context) => {
    known ??= readStaticFile(file());
    const headers = {
      "Cache-Control": CACHE_CONTROL,
      ETag: known.etag,
      Vary: "Accept-Encoding",
      "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    };
    const sent = context.header("if-none-match");
    if (sent !== "" && matchesEtag(sent, known.etag)) return { status: 304, headers };
    const coding = acceptedCoding(context.header("accept-encoding"));
    if (coding === undefined) {
      return { status: 200, ready: known.bytes, headers: { ...headers, "Content-Type": contentType } };
    }
    return {
      status: 200,
      ready: await compressedBytes(known, coding),
      headers: { ...headers, "Content-Type": contentType, "Content-Encoding": coding },
    };
  };
}

/** The entity tag is weak, because it is the same for each coding. */
function readStaticFile(file: URL | string): StaticFile {
  const bytes = readFileSync(file);
  return { bytes, etag: `W/"${hash("sha256", bytes, "base64url").slice(0, 20)}"`, compressed: new Map() };
}

function compressedBytes({ bytes, compressed }: StaticFile, coding: ContentCoding): Promise<Uint8Array> {
  const made = compressed.get(coding) ?? COMPRESS[coding](bytes);
  compressed.set(coding, made);
  return made;
}

/** Brotli is first, because its result is smaller. */
const CODINGS: readonly ContentCoding[] = ["br", "gzip"];

/** The compression that a client accepts (RFC 9110, 12.5.3). Undefined means no compression. */
export function acceptedCoding(header: string): ContentCoding | undefined {
  const weights = new Map<string, number>();
  for (const entry of header.toLowerCase().split(",")) {
    const [coding = "", ...parameters] = entry.split(";").map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith("q="));
    weights.set(coding, weight === undefined ? 1 : Number(weight.slice("q=".length)));
  }
  const weightOf = (coding: string): number => weights.get(coding) ?? weights.get("*") ?? 0;
  const [best] = CODINGS.toSorted((left, right) => weightOf(right) - weightOf(left));
  return best !== undefined && weightOf(best) > 0 ? best : undefined;
}
