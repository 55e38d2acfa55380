/** Signs as the service does (contract, "Signature"). */
import { createHmac, randomBytes } from "node:crypto";

export const SIGNATURE_HEADER = "X-Service-Robotics-Signature";

/** A secret in the form of the service's. */
export const newSecret = (): string => `whsec_${randomBytes(32).toString("base64url")}`;

export function sign(secret: string, { body, nowMs }: { readonly body: string; readonly nowMs: number }): string {
  const t = Math.floor(nowMs / 1_000);
  return `t=${t},v1=${createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex")}`;
}
