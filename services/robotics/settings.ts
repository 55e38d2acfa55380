/** What an operator sets about the robotics service. */
import { z } from "zod";
import { setting, wholeNumber } from "../runtime/settings.ts";

export const roboticsSettingsSchema = z.object({
  // Its entries in the audit log are kept for ever.
  ROBOTICS_TASK_RETENTION_DAYS: setting(wholeNumber(1, 3_650).default(90), {
    meaning: "How many days a serving task that has ended can be read.",
    shared: true,
  }),
});
