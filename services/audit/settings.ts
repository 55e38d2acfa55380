/** How long the audit service keeps what it copied. */
import { z } from "zod";
import { wholeNumber } from "../runtime/settings.ts";

const days = wholeNumber(1, 36_500);

export const auditSettingsSchema = z
  .object({
    /** Events and intents: ten years and a bit, as long as books are usually kept. */
    AUDIT_EVENT_RETENTION_DAYS: days.default(3_660),
    /** Answers for repeated commands: far longer than any client retries. */
    AUDIT_COMMAND_RETENTION_DAYS: days.default(30),
  })
  .transform((values) => ({
    eventRetentionDays: values.AUDIT_EVENT_RETENTION_DAYS,
    commandRetentionDays: values.AUDIT_COMMAND_RETENTION_DAYS,
  }));
export type AuditSettings = z.infer<typeof auditSettingsSchema>;
