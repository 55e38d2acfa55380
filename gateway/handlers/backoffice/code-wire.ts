/** An enrollment code for the wire; the code itself is not among its facts, for it is shown once. */
import type { z } from "zod";
import type { enrollmentCodeSchema as CodeMessage } from "../../../services/bus/messages/enrollment-codes.ts";
import type { enrollmentCodeSchema } from "../../contract/backoffice.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";

export function enrollmentCodeWire(code: z.infer<typeof CodeMessage>): z.infer<typeof enrollmentCodeSchema> {
  return {
    code_id: code.codeId,
    device_id: code.deviceId,
    status: code.status,
    expires_at: toTimestamp(code.expiresAtMs),
    created_at: toTimestamp(code.createdAtMs),
  };
}
