/** How long the audit service keeps what it copied. */
import { z } from "zod";
import { wholeNumber } from "../runtime/settings.ts";

export const auditSettingsSchema = z
  .object({
    /** Events and intents: ten years and a bit, as long as books are usually kept. */
    AUDIT_EVENT_RETENTION_DAYS: wholeNumber(1, 36_500).default(3_660),
  })
  .transform((values) => ({ eventRetentionDays: values.AUDIT_EVENT_RETENTION_DAYS }));
export type AuditSettings = z.infer<typeof auditSettingsSchema>;
