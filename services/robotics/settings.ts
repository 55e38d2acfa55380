/** What an operator sets about the robotics service. */
import { z } from "zod";
import { wholeNumber } from "../runtime/settings.ts";

export const roboticsSettingsSchema = z.object({
  /** How many days a task that has ended can still be read; its entries in the trail are kept for ever. */
  ROBOTICS_TASK_RETENTION_DAYS: wholeNumber(1, 3_650).default(90),
});
export type RoboticsSettings = z.infer<typeof roboticsSettingsSchema>;
