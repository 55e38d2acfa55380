/** `services/main.ts` with the limits of SIGNER_LIMITS and TARGET_LIMITS, as JSON, so that a test need not wait for long. */
import { SIGNER_LIMITS, TARGET_LIMITS } from "../../../services/webhook-signer/limits.ts";

Object.assign(SIGNER_LIMITS, JSON.parse(process.env["SIGNER_LIMITS"] ?? "{}"));
Object.assign(TARGET_LIMITS, JSON.parse(process.env["TARGET_LIMITS"] ?? "{}"));
await import("../../../services/main.ts");
