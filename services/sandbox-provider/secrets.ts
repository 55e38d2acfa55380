/** Account secrets: an API key is stored as its hash, a callback secret nowhere. */
import { createHash, createHmac, randomBytes } from "node:crypto";

export function newApiKey(): string {
  return `sbx_${randomBytes(32).toString("base64url")}`;
}

export function apiKeyHash(apiKey: string): Buffer {
  return createHash("sha256").update(apiKey).digest();
}

/** The account's secret of that generation: always the same one for the same provider key. */
export function callbackSecret(key: Buffer, accountId: string, generation: number): string {
  return createHmac("sha256", key).update(`callback-secret:${accountId}:${generation}`).digest("base64url");
}

/** `t=<seconds>,v1=<hex>` with one `v1` for each secret. */
export function signatureHeader(body: string, secrets: readonly string[], atMs: number): string {
  const timestamp = Math.floor(atMs / 1_000);
  const signatures = secrets.map(
    (secret) => `v1=${createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex")}`,
  );
  return [`t=${timestamp}`, ...signatures].join(",");
}
