import { requirePermission } from "../../bus/messages/caller.ts";
import type { offerTask } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { insertOutbox } from "../../db/outbox.ts";
import type { Transaction } from "../../db/pool.ts";
import { personActor, recordRoboticsTrail } from "../../db/robotics-trail.ts";
import type { RoboticsDeps } from "../deps.ts";
import { taskEvent } from "../events.ts";
import { ROBOTICS_LIMITS } from "../limits.ts";
import { findConsumer, holdConsumer } from "../sql/consumers.ts";
import { lockFilial, takeDisplayNumber } from "../sql/filials.ts";
import { countOpenTasks, findTaskByKey, insertTask, type TaskRow } from "../sql/tasks.ts";
import { requestHash } from "./request-hash.ts";
import { taskOnWire } from "./task-wire.ts";

type Request = RequestOf<typeof offerTask>;

/**
 * The filial is locked from the first look to the commit: two requests under one key are one after the other, no offer
 * is committed after a pause that was answered, and a consumer's task ids grow in the order of the commits, so that
 * whoever reads on after the last id misses none. Refuses with `permission_denied`, `not_found` (the consumer),
 * `idempotency_key_reused`, `robotics_paused`, `conflict` (a suspended consumer) or `busy` (it has too many open tasks).
 */
export async function offer(
  { database, figures }: Pick<RoboticsDeps, "database" | "figures">,
  request: Request,
): Promise<ReplyOf<typeof offerTask>> {
  const { caller, consumerId, idempotencyKey } = request;
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const hash = requestHash(request);
  const { task, isNew } = await database.begin(async (sql) => {
    // A consumer never moves to another filial, so this look needs no lock.
    const known = await findConsumer(sql, { organizationId, consumerId });
    if (known === undefined) throw new RefusedError({ code: "not_found" });
    const filialId = known.filial_id;
    const filial = await lockFilial(sql, { organizationId, filialId });
    const earlier =
      idempotencyKey === undefined ? undefined : await findTaskByKey(sql, { organizationId, idempotencyKey });
    if (earlier !== undefined) return { task: sameRequest(earlier, hash), isNew: false };
    if (filial?.is_paused === true) throw new RefusedError({ code: "robotics_paused" });
    await requireRoom(sql, request);
    const displayNumber = await takeDisplayNumber(sql, filialId);
    const { leg, manifest, destination, validForMs } = request;
    const wanted = { leg, manifest, destination, validForMs, idempotencyKey, requestHash: hash };
    const made = await insertTask(sql, { organizationId, filialId, consumerId, displayNumber, ...wanted });
    // Only an offer at another filial can have come between, and that is another request.
    if (made === undefined) throw new RefusedError({ code: "idempotency_key_reused" });
    await recordRoboticsTrail(sql, {
      organizationId,
      actor: personActor(caller),
      action: "serving_task_offered",
      subject: { kind: "serving_task", id: made.task_id },
      data: { consumer_id: consumerId, display_number: displayNumber, leg },
    });
    await insertOutbox(sql, taskEvent(made, "serving_task.offered"));
    return { task: made, isNew: true };
  });
  if (isNew) figures.taskChanges.add({ status: "offered" });
  return { task: taskOnWire(task) };
}

function sameRequest(task: TaskRow, hash: Buffer): TaskRow {
  if (task.request_hash?.equals(hash) === true) return task;
  throw new RefusedError({ code: "idempotency_key_reused" });
}

async function requireRoom(sql: Transaction, { caller, consumerId }: Request): Promise<void> {
  const consumer = await holdConsumer(sql, { organizationId: caller.organizationId, consumerId });
  if (consumer?.status !== "active") {
    throw new RefusedError({ code: "conflict", detail: "This consumer is suspended; nothing can be offered to it." });
  }
  if ((await countOpenTasks(sql, consumerId)) >= ROBOTICS_LIMITS.openTasks) {
    const detail = `A consumer has at most ${ROBOTICS_LIMITS.openTasks} tasks offered or accepted at once.`;
    throw new RefusedError({ code: "busy", detail, retryAfterMs: ROBOTICS_LIMITS.openTasksRetryMs });
  }
}
