/** Offers that nobody accepted in time. Several processes share the work: what one has locked, the others pass over. */
import { insertOutboxRows } from "../../db/outbox.ts";
import { SYSTEM_ACTOR } from "../../db/robotics-trail.ts";
import type { RoboticsDeps } from "../deps.ts";
import { ROBOTICS_LIMITS } from "../limits.ts";
import { lockDueTasks } from "../sql/tasks.ts";
import { moveTask } from "./move-task.ts";

/** Returns how many it has expired; bounded, because what is left is taken up at the next look. */
export async function expireDue(deps: Pick<RoboticsDeps, "database" | "figures">): Promise<number> {
  let total = 0;
  for (let turn = 0; turn < ROBOTICS_LIMITS.turnsPerLook; turn += 1) {
    const expired = await expireSome(deps);
    total += expired;
    if (expired < ROBOTICS_LIMITS.offersPerTurn) break;
  }
  return total;
}

async function expireSome({ database, figures }: Pick<RoboticsDeps, "database" | "figures">): Promise<number> {
  const expired = await database.begin(async (sql) => {
    const due = await lockDueTasks(sql, ROBOTICS_LIMITS.offersPerTurn);
    const moved = [];
    for (const task of due) moved.push(await moveTask(sql, task, { type: "EXPIRE", actor: SYSTEM_ACTOR }));
    await insertOutboxRows(
      sql,
      moved.flatMap(({ events }) => events),
    );
    return moved.length;
  });
  if (expired > 0) figures.taskChanges.add({ status: "expired" }, expired);
  return expired;
}
