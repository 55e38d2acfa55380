/** What a consumer does with a task: it accepts the offer, and says when it is done. */
import type { acceptTask, ConsumerCaller, completeTask } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { Transaction } from "../../db/pool.ts";
import type { RoboticsDeps } from "../deps.ts";
import { holdConsumer } from "../sql/consumers.ts";
import { holdFilial } from "../sql/filials.ts";
import { lockTask, type TaskRow } from "../sql/tasks.ts";
import { consumerActor } from "../trail/actors.ts";
import { moveTask, runMove } from "./move-task.ts";
import { taskOnWire } from "./task-wire.ts";

type Using = Pick<RoboticsDeps, "database" | "figures">;

/**
 * The filial is held as well, so that nothing is accepted after a pause that was answered. Refuses with `not_found`,
 * `task_expired`, `task_not_actionable` with the status, `robotics_paused`, or `permission_denied` (just suspended).
 */
export async function accept(
  deps: Using,
  { consumer, taskId }: RequestOf<typeof acceptTask>,
): Promise<ReplyOf<typeof acceptTask>> {
  const task = await runMove(deps, async (sql) => {
    const { isPaused } = await holdFilial(sql, consumer);
    const held = await holdTask(sql, consumer, taskId);
    if (held.status === "accepted") return { task: held, events: [] };
    const moved = await moveTask(sql, held, { type: "ACCEPT", actor: consumerActor(consumer) });
    // An offer that has expired has, pause or not; only an acceptance is undone with the transaction.
    if (isPaused && moved.change === "accepted") throw new RefusedError({ code: "robotics_paused" });
    return moved;
  });
  return { task: taskOnWire(task) };
}

/** Also during a pause. Refuses with `not_found`, `task_not_actionable` with the status, or `permission_denied` (just suspended). */
export async function complete(
  deps: Using,
  { consumer, taskId }: RequestOf<typeof completeTask>,
): Promise<ReplyOf<typeof completeTask>> {
  const task = await runMove(deps, async (sql) => {
    const held = await holdTask(sql, consumer, taskId);
    if (held.status === "completed") return { task: held, events: [] };
    return await moveTask(sql, held, { type: "COMPLETE", actor: consumerActor(consumer) });
  });
  return { task: taskOnWire(task) };
}

/** The consumer first and then its task, as everywhere, so that two transactions never wait for each other. */
async function holdTask(sql: Transaction, consumer: ConsumerCaller, taskId: number): Promise<TaskRow> {
  const { organizationId, consumerId } = consumer;
  const known = await holdConsumer(sql, { organizationId, consumerId });
  if (known?.status !== "active") throw new RefusedError({ code: "permission_denied" });
  const held = await lockTask(sql, { organizationId, consumerId, taskId });
  if (held === undefined) throw new RefusedError({ code: "not_found" });
  return held;
}
