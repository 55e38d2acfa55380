/** The signature of a delivery (contract, "Signature"). */
import { createHmac } from "node:crypto";

export const SIGNATURE_HEADER = "X-Service-Robotics-Signature";

/**
 * `t=<unix seconds>,v1=<hex>`, with one `v1` for each live secret, the newest first. Each is HMAC-SHA256 over
 * `<t>.<raw body>`, keyed with the secret's text as it was shown.
 */
export function signatureHeader(secrets: readonly string[], { body, nowMs }: { body: string; nowMs: number }): string {
  const t = Math.floor(nowMs / 1_000);
  const signatures = secrets.map((secret) => `v1=${createHmac("sha256", secret).update(`${t}.${body}`).digest("hex")}`);
  return [`t=${t}`, ...signatures].join(",");
}
