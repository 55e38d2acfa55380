/** Serving tasks that ended longer ago than they are kept. */
import type { Retention } from "../runtime/retention.ts";
import type { RoboticsDeps } from "./deps.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import { deleteEndedTasks } from "./sql/housekeeping.ts";

/** What is open stays, however old it is. Entries of the audit log are kept for ever. */
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
