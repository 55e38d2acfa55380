/** The retention of serving tasks. Entries of the audit log are kept for ever. */
import type { Retention } from "../runtime/retention.ts";
import type { RoboticsDeps } from "./deps.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import { deleteEndedTasks } from "./sql/serving-tasks.ts";

/** Deletes tasks that have ended. Open tasks stay, however old they are. */
export function taskRetention({
  database,
  retentionDays: olderThanDays,
}: Pick<RoboticsDeps, "database" | "retentionDays">): Retention<"tasks"> {
  return {
    what: "old serving tasks",
    ...ROBOTICS_LIMITS.retention,
    removals: { tasks: (rows) => deleteEndedTasks(database, { olderThanDays, rows }) },
  };
}
