/** One step of a task, as the machine has it, with its entry in the trail and what consumers are told of it. */
import { nextTaskStatus, type ServingTaskEvent, type ServingTaskStatus } from "../../../machines/serving-task.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { insertOutboxRows, type OutboxRow } from "../../db/outbox.ts";
import type { Database, Transaction } from "../../db/pool.ts";
import { type RoboticsTrailEntry, recordRoboticsTrail, SYSTEM_ACTOR } from "../../db/robotics-trail.ts";
import type { RoboticsDeps } from "../deps.ts";
import { taskEvent } from "../events.ts";
import { isPastDeadline, type TaskRow, updateStatus } from "../sql/tasks.ts";

export interface Move {
  readonly type: ServingTaskEvent["type"];
  readonly actor: RoboticsTrailEntry["actor"];
  /** Why the owner cancels. */
  readonly reason?: string;
}

/** What came of a transaction: the task as it stands after it, and why what was asked was refused all the same. */
export interface Moved {
  readonly task: TaskRow;
  readonly refusal?: RefusedError;
  /** The status that the task has come to; undefined when nothing changed. */
  readonly change?: ServingTaskStatus;
  readonly events: readonly OutboxRow[];
}

/** What consumers are told of; a task that they accept or complete themselves is no news to them. */
const EVENT_TYPES = {
  CANCEL: "serving_task.cancelled",
  EXPIRE: "serving_task.expired",
} as const;

/**
 * Moves a task that the transaction holds. One that has ended, or that does not take the move, is refused with
 * `task_not_actionable` and its status. An offer past its deadline expires first, whatever was asked: the deadline counts
 * although nobody has looked yet.
 */
export async function moveTask(sql: Transaction, task: TaskRow, move: Move): Promise<Moved> {
  if (task.status === "offered" && move.type !== "EXPIRE" && (await isPastDeadline(sql, task.task_id))) {
    const expired = await moveTask(sql, task, { type: "EXPIRE", actor: SYSTEM_ACTOR });
    return { ...expired, refusal: refusalIn(expired.task.status, move.type) };
  }
  const status = nextTaskStatus(task.status, move.type);
  if (status === undefined) return { task, refusal: refusalIn(task.status, move.type), events: [] };
  const { type, actor, reason } = move;
  const moved = await updateStatus(sql, task.task_id, { status, cancelReason: reason ?? null });
  await recordRoboticsTrail(sql, {
    organizationId: task.organization_id,
    actor,
    action: `serving_task_${status}`,
    subject: { kind: "serving_task", id: task.task_id },
    data: { display_number: task.display_number, ...(reason === undefined ? {} : { reason }) },
  });
  const events = type === "CANCEL" || type === "EXPIRE" ? [taskEvent(moved, EVENT_TYPES[type])] : [];
  return { task: moved, change: status, events };
}

/** What accepting too late is refused with is a code of its own, because a robot may well meet it. */
function refusalIn(status: ServingTaskStatus, type: Move["type"]): RefusedError {
  const code = type === "ACCEPT" && status === "expired" ? "task_expired" : "task_not_actionable";
  return new RefusedError({ code, status });
}

/**
 * Runs a transaction that may move one task, and writes what consumers are told last, because that takes a lock. A
 * refusal is thrown after the commit: an offer that is refused because it has expired has expired.
 */
export async function runMove(
  { database, figures }: { readonly database: Database; readonly figures: RoboticsDeps["figures"] },
  move: (sql: Transaction) => Promise<Moved>,
): Promise<TaskRow> {
  const { task, refusal, change } = await database.begin(async (sql) => {
    const moved = await move(sql);
    await insertOutboxRows(sql, moved.events);
    return moved;
  });
  if (change !== undefined) figures.taskChanges.add({ status: change });
  if (refusal !== undefined) throw refusal;
  return task;
}
