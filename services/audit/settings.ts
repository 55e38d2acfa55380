/** How long the audit service keeps what it copied. */
import { z } from "zod";
import { setting, wholeNumber } from "../runtime/settings.ts";

export const auditSettingsSchema = z
  .object({
    // Ten years and a few days, as long as books are usually kept.
    AUDIT_EVENT_RETENTION_DAYS: setting(wholeNumber(1, 36_500).default(3_660), {
      meaning: "How many days the stations' events and the intents are kept.",
      shared: true,
    }),
  })
  .transform((values) => ({ eventRetentionDays: values.AUDIT_EVENT_RETENTION_DAYS }));
export type AuditSettings = z.infer<typeof auditSettingsSchema>;
