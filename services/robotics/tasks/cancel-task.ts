import { requirePermission } from "../../bus/messages/caller.ts";
import type { cancelTask } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { personActor } from "../../db/robotics-trail.ts";
import type { RoboticsDeps } from "../deps.ts";
import { lockTask } from "../sql/tasks.ts";
import { moveTask, runMove } from "./move-task.ts";
import { taskOnWire } from "./task-wire.ts";

/**
 * Also during a pause and of a suspended consumer. One that is cancelled already is answered as it is. Refuses with
 * `permission_denied`, `not_found` or `task_not_actionable` with the status.
 */
export async function cancel(
  deps: Pick<RoboticsDeps, "database" | "figures">,
  { caller, taskId, reason }: RequestOf<typeof cancelTask>,
): Promise<ReplyOf<typeof cancelTask>> {
  requirePermission(caller, "organization.manage");
  const task = await runMove(deps, async (sql) => {
    const held = await lockTask(sql, { organizationId: caller.organizationId, taskId });
    if (held === undefined) throw new RefusedError({ code: "not_found" });
    if (held.status === "cancelled") return { task: held, events: [] };
    return await moveTask(sql, held, { type: "CANCEL", actor: personActor(caller), reason });
  });
  return { task: taskOnWire(task) };
}
