/** Keeps what the service records bounded. */
import type { RoboticsDeps } from "./deps.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import { deleteEndedTasks } from "./sql/housekeeping.ts";

/** Removes tasks that ended longer ago than they are kept; returns how many. What is open stays, however old it is. */
export async function removeEndedTasks({
  database,
  log,
  retentionDays: olderThanDays,
}: Pick<RoboticsDeps, "database" | "log" | "retentionDays">): Promise<number> {
  const { rowsPerRemoval: rows } = ROBOTICS_LIMITS;
  for (let tasks = 0; ; ) {
    const removed = await deleteEndedTasks(database, { olderThanDays, rows });
    tasks += removed;
    if (removed === rows) continue;
    if (tasks > 0) log.info({ tasks }, "removed old serving tasks");
    return tasks;
  }
}
