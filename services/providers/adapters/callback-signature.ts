/**
 * The signature of a callback: `x-provider-signature: t=<unix seconds>,v1=<hex>`, where `v1` is HMAC-SHA256 over
 * `<t>.<raw body>`. During a rotation a header may have several `v1`, and several secrets are accepted.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { parseSignatureHeader } from "../../bus/signature-header.ts";
import { PROVIDER_LIMITS } from "../limits.ts";

/** `stale`: the signature is right and its time is too far from the service's clock. Every other mismatch is `invalid`. */
export type Verdict = "valid" | "stale" | "invalid" | "missing";

export interface SignedCallback {
  readonly header: string | undefined;
  readonly body: Uint8Array;
}

/** Compares every secret with every signature in constant time, also after a match. */
export function verifySignature(callback: SignedCallback, secrets: readonly string[], nowMs: number): Verdict {
  const { header, body } = callback;
  if (header === undefined || header === "") return "missing";
  const parsed = parseSignatureHeader(header);
  if (parsed === undefined) return "invalid";
  let matches = 0;
  for (const secret of secrets) {
    const expected = createHmac("sha256", secret).update(`${parsed.timestamp}.`).update(body).digest();
    for (const signature of parsed.signatures) matches += timingSafeEqual(expected, signature) ? 1 : 0;
  }
  if (matches === 0) return "invalid";
  const distanceMs = Math.abs(nowMs - Number(parsed.timestamp) * 1_000);
  return distanceMs <= PROVIDER_LIMITS.callbackToleranceMs ? "valid" : "stale";
}
