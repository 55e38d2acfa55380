/** Keeps what the service records bounded. */
import { removeInBatches } from "../db/remove-in-batches.ts";
import type { RoboticsDeps } from "./deps.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import { deleteEndedTasks } from "./sql/housekeeping.ts";

/**
 * Removes tasks that ended longer ago than they are kept; returns how many. What is open stays, however old it is, and so
 * does what the trail says of them all: it is kept for ever.
 */
export async function removeEndedTasks({
  database,
  log,
  retentionDays: olderThanDays,
}: Pick<RoboticsDeps, "database" | "log" | "retentionDays">): Promise<number> {
  const { rowsPerRemoval: rows } = ROBOTICS_LIMITS;
  const tasks = await removeInBatches(rows, () => deleteEndedTasks(database, { olderThanDays, rows }));
  if (tasks > 0) log.info({ tasks }, "removed old serving tasks");
  return tasks;
}
