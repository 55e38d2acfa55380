/**
 * Checks whether a webhook comes from this service. This file needs only Node's crypto: copy it. `docs/webhooks.md` describes
 * how to use it without TypeScript, and `webhook-vectors.json` has what it must return.
 *
 *   const verdict = verifyWebhook({ header: request.headers["x-service-robotics-signature"], body, secrets: [secret] });
 *   if (verdict !== "valid") return answer(401);
 *
 * `body` is the body as it was received, byte for byte, before any parsing.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

/** All that `verifyWebhook` can return. */
export const WEBHOOK_VERDICTS = [
  "valid",
  /** There is no signature header. */
  "header_missing",
  /** The header is not `t=<unix seconds>,v1=<hex>`, optionally followed by further signatures. */
  "header_malformed",
  /** No signature is the one of this body and time with one of the secrets. */
  "signature_wrong",
  /** The signature is right, but too old: another party may have repeated a webhook that it has received. */
  "too_old",
  /** The signature is right, but for a time in the future: one of the two clocks is wrong. */
  "too_new",
] as const;
export type WebhookVerdict = (typeof WEBHOOK_VERDICTS)[number];

export interface WebhookToVerify {
  /** The value of `X-Service-Robotics-Signature`, as the HTTP library returns it. */
  readonly header: string | readonly string[] | null | undefined;
  /** The raw body. */
  readonly body: string | Uint8Array;
  /** The valid secrets as they were shown, with `whsec_`: one, or two during a rotation. */
  readonly secrets: readonly string[];
  /** How much the signature's time may differ from now, in both directions; five minutes by default. */
  readonly toleranceSeconds?: number;
  /** The current time in milliseconds since 1970; by default that of the clock. */
  readonly nowMs?: number;
}

const TOLERANCE_SECONDS = 300;
/** Two secrets make two signatures; a header with more than a few is refused, because each costs an HMAC for each secret. */
const MAX_HEADER_CHARACTERS = 1_024;
const MAX_SIGNATURES = 8;
/** The only accepted form, so that no two headers mean the same. Signatures of versions other than `v1` are ignored. */
const HEADER = /^t=(\d{1,12})((?:,(?:v1=[0-9a-f]{64}|v(?!1=)\d{1,3}=[0-9a-f]{1,256}))+)$/;
const SIGNATURE = /,v1=([0-9a-f]{64})/g;

/** Returns one of `WEBHOOK_VERDICTS`. Throws a TypeError without a secret, because then any party could sign. */
export function verifyWebhook(webhook: WebhookToVerify): WebhookVerdict {
  const { header, body, secrets, toleranceSeconds = TOLERANCE_SECONDS, nowMs = Date.now() } = webhook;
  if (secrets.length === 0 || secrets.some((secret) => typeof secret !== "string" || secret === ""))
    throw new TypeError("A webhook cannot be verified without its secret.");
  if (header === undefined || header === null || header === "") return "header_missing";
  const read = readHeader(header);
  if (read === undefined) return "header_malformed";
  const { t, signatures } = read;
  // Every signature is compared with every secret, so that the duration reveals nothing.
  let isSigned = false;
  for (const secret of secrets) {
    const expected = createHmac("sha256", secret).update(`${t}.`).update(body).digest();
    for (const signature of signatures) isSigned = timingSafeEqual(expected, signature) || isSigned;
  }
  if (!isSigned) return "signature_wrong";
  const ageSeconds = Math.floor(nowMs / 1_000) - Number(t);
  // Compared this way, a tolerance or a clock that is NaN accepts nothing.
  if (ageSeconds >= 0) return ageSeconds <= toleranceSeconds ? "valid" : "too_old";
  return -ageSeconds <= toleranceSeconds ? "valid" : "too_new";
}

/** The signatures, and the time as the header has it, because the signature covers that text. */
function readHeader(header: string | readonly string[]): { t: string; signatures: readonly Buffer[] } | undefined {
  // Several headers of this name are refused, too.
  if (typeof header !== "string" || header.length > MAX_HEADER_CHARACTERS) return undefined;
  const [, t, rest] = HEADER.exec(header) ?? [];
  if (t === undefined || rest === undefined) return undefined;
  const signatures = [...rest.matchAll(SIGNATURE)].map(([, hex = ""]) => Buffer.from(hex, "hex"));
  return signatures.length === 0 || signatures.length > MAX_SIGNATURES ? undefined : { t, signatures };
}
