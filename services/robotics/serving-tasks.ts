/**
 * Serving tasks: the owner offers and cancels them, their consumer reads, accepts and completes them, and the service
 * expires offers past their deadline. Every step is the machine's (`machines/serving-task.ts`), with an entry in the audit
 * log and the event for the consumer, in one transaction.
 */
import { createHash } from "node:crypto";
import { nextTaskStatus, type ServingTaskEvent, type ServingTaskStatus } from "../../machines/serving-task.ts";
import { personActor, requirePermission } from "../bus/messages/caller.ts";
import type { ConsumerCaller } from "../bus/messages/consumers.ts";
import type * as messages from "../bus/messages/serving-tasks.ts";
import type { Handler, ReplyOf, RequestOf } from "../bus/operation.ts";
import { readPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { insertOutbox, insertOutboxRows, type OutboxRow } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { type RoboticsAction, recordRoboticsAction, SYSTEM_ACTOR } from "../db/robotics-audit-log.ts";
import type { RoboticsDeps } from "./deps.ts";
import { taskEvent } from "./events.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import { findConsumer, holdConsumer } from "./sql/consumers.ts";
import { getFilialRobotics, holdFilial, lockFilial, takeDisplayNumber } from "./sql/filial-robotics.ts";
import * as sql from "./sql/serving-tasks.ts";

type Deps = Pick<RoboticsDeps, "database" | "metrics">;
type ReadDeps = Pick<RoboticsDeps, "database">;
type TaskReply = ReplyOf<typeof messages.getServingTask>;
type OfferRequest = RequestOf<typeof messages.offerServingTask>;

/**
 * The organization's tasks, newest first. Another organization's filial or consumer has none. Refuses with
 * `permission_denied`.
 */
export const listServingTasks: Handler<ReadDeps, typeof messages.listServingTasks> = async ({ database }, request) => {
  const { caller, filialId, consumerId, status, beforeId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const { page, hasMore } = await readPage<messages.ServingTask>(limit, async (last, count) => {
    const wanted = { organizationId, filialId, consumerId, status, beforeId: last?.taskId ?? beforeId, limit: count };
    return (await sql.listServingTasks(database, wanted)).map(taskOf);
  });
  return { tasks: page, hasMore };
};

/** Refuses with `permission_denied` or `not_found`. */
export const getServingTask: Handler<ReadDeps, typeof messages.getServingTask> = async ({ database }, request) => {
  const { caller, taskId } = request;
  requirePermission(caller, "organization.manage");
  const row = existing(await sql.getServingTask(database, { organizationId: caller.organizationId, taskId }));
  return { task: taskOf(row) };
};

/** The consumer's tasks, oldest first. */
export const listConsumerTasks: Handler<ReadDeps, typeof messages.listConsumerTasks> = async (deps, request) => {
  const { database } = deps;
  const { consumer, status, sinceId, limit } = request;
  const { consumerId } = consumer;
  const [filial, { page, hasMore }] = await Promise.all([
    getFilialRobotics(database, consumer),
    readPage<messages.ServingTask>(limit, async (last, count) => {
      const wanted = { consumerId, status, sinceId: last?.taskId ?? sinceId, limit: count };
      return (await sql.listConsumerTasks(database, wanted)).map(taskOf);
    }),
  ]);
  return { tasks: page, hasMore, paused: filial?.is_paused ?? false };
};

/** Refuses with `not_found`, also for another consumer's task. */
export const getConsumerTask: Handler<ReadDeps, typeof messages.getConsumerTask> = async ({ database }, request) => {
  const { consumer, taskId } = request;
  const { organizationId, consumerId } = consumer;
  const row = existing(await sql.getServingTask(database, { organizationId, consumerId, taskId }));
  return { task: taskOf(row) };
};

/**
 * The filial is locked from the first read to the commit. So requests under one key run one after the other, and no
 * offer is committed after the answer to a pause. A consumer's task ids grow in the order of the commits, so that a
 * reader that continues after the last id misses no task.
 *
 * Refuses with `permission_denied`, `not_found` (the consumer), `idempotency_key_reused`, `robotics_paused`, `conflict`
 * (a suspended consumer) or `busy` (the consumer has too many open tasks).
 */
export const offerServingTask: Handler<Deps, typeof messages.offerServingTask> = async (deps, request) => {
  const { database, metrics } = deps;
  const { caller, consumerId, idempotencyKey } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const hash = requestHash(request);
  const { task, isNew } = await database.begin(async (transaction) => {
    // A consumer never moves to another filial, so this read needs no lock.
    const known = existing(await findConsumer(transaction, { organizationId, consumerId }), "consumer_id");
    const filialId = known.filial_id;
    const filial = await lockFilial(transaction, { organizationId, filialId });
    const earlier =
      idempotencyKey === undefined
        ? undefined
        : await sql.findTaskByKey(transaction, { organizationId, idempotencyKey });
    if (earlier !== undefined) return { task: requireSameRequest(earlier, hash), isNew: false };
    if (filial?.is_paused === true) throw new RefusedError({ code: "robotics_paused" });
    await requireRoom(transaction, request);
    const displayNumber = await takeDisplayNumber(transaction, filialId);
    const { leg, manifest, destination, validForMs } = request;
    const wanted = { leg, manifest, destination, validForMs, idempotencyKey, requestHash: hash };
    const place = { organizationId, filialId, consumerId, displayNumber };
    const made = await sql.offerServingTask(transaction, { ...place, ...wanted });
    // An offer at another filial has used the key meanwhile, and that is another request.
    if (made === undefined) throw new RefusedError({ code: "idempotency_key_reused" });
    await recordRoboticsAction(transaction, {
      organizationId,
      actor: personActor(caller),
      action: "serving_task_offered",
      subject: { kind: "serving_task", id: made.task_id },
      data: { consumer_id: consumerId, display_number: displayNumber, leg },
    });
    await insertOutbox(transaction, taskEvent(made, "serving_task.offered"));
    return { task: made, isNew: true };
  });
  if (isNew) metrics.taskChanges.add({ status: "offered" });
  return { task: taskOf(task) };
};

/** The hash of an offer's content. It distinguishes a repetition under one key from another request. */
function requestHash({ consumerId, leg, manifest, destination, validForMs }: OfferRequest): Buffer {
  const lines = manifest.map(({ name, quantity }) => [name, quantity]);
  const asked = [consumerId, leg, lines, destination.name, destination.details ?? null, validForMs];
  return createHash("sha256").update(JSON.stringify(asked)).digest();
}

function requireSameRequest(task: sql.TaskRow, hash: Buffer): sql.TaskRow {
  if (task.request_hash?.equals(hash) === true) return task;
  throw new RefusedError({ code: "idempotency_key_reused" });
}

async function requireRoom(transaction: Transaction, { caller, consumerId }: OfferRequest): Promise<void> {
  const consumer = await holdConsumer(transaction, { organizationId: caller.organizationId, consumerId });
  if (consumer?.status !== "active") {
    throw new RefusedError({ code: "conflict", detail: "This consumer is suspended; nothing can be offered to it." });
  }
  if ((await sql.countOpenTasks(transaction, consumerId)) >= ROBOTICS_LIMITS.openTasks) {
    const detail = `A consumer has at most ${ROBOTICS_LIMITS.openTasks} tasks offered or accepted at once.`;
    throw new RefusedError({ code: "busy", detail, retryAfterMs: ROBOTICS_LIMITS.openTasksRetryMs });
  }
}

/**
 * Cancels also during a pause, and also the task of a suspended consumer. Returns a cancelled task as it is. Refuses
 * with `permission_denied`, `not_found` or `task_not_actionable` with the status.
 */
export const cancelServingTask: Handler<Deps, typeof messages.cancelServingTask> = async (deps, request) => {
  const { caller, taskId, reason } = request;
  requirePermission(caller, "organization.manage");
  return await runMove(deps, async (transaction) => {
    const task = existing(await sql.lockTask(transaction, { organizationId: caller.organizationId, taskId }));
    if (task.status === "cancelled") return { task, events: [] };
    return await moveTask(transaction, task, { type: "CANCEL", actor: personActor(caller), reason });
  });
};

/**
 * Holds the filial as well, so that no task is accepted after the answer to a pause. Refuses with `not_found`,
 * `task_expired`, `task_not_actionable` with the status, `robotics_paused`, or `permission_denied` (just suspended).
 */
export const acceptServingTask: Handler<Deps, typeof messages.acceptServingTask> = async (deps, request) => {
  const { consumer, taskId } = request;
  return await runMove(deps, async (transaction) => {
    const { isPaused } = await holdFilial(transaction, consumer);
    const task = await holdTask(transaction, consumer, taskId);
    if (task.status === "accepted") return { task, events: [] };
    const moved = await moveTask(transaction, task, { type: "ACCEPT", actor: consumerActor(consumer) });
    // The expiry of an offer stays, pause or not; only an acceptance is rolled back with the transaction.
    if (isPaused && moved.change === "accepted") throw new RefusedError({ code: "robotics_paused" });
    return moved;
  });
};

/**
 * Completes also during a pause. Refuses with `not_found`, `task_not_actionable` with the status, or
 * `permission_denied` (just suspended).
 */
export const completeServingTask: Handler<Deps, typeof messages.completeServingTask> = async (deps, request) => {
  const { consumer, taskId } = request;
  return await runMove(deps, async (transaction) => {
    const task = await holdTask(transaction, consumer, taskId);
    if (task.status === "completed") return { task, events: [] };
    return await moveTask(transaction, task, { type: "COMPLETE", actor: consumerActor(consumer) });
  });
};

/** Locks the consumer first and then its task, as everywhere, so that two transactions never wait for each other. */
async function holdTask(transaction: Transaction, consumer: ConsumerCaller, taskId: number): Promise<sql.TaskRow> {
  const { organizationId, consumerId } = consumer;
  const known = await holdConsumer(transaction, { organizationId, consumerId });
  if (known?.status !== "active") throw new RefusedError({ code: "permission_denied" });
  const task = existing(await sql.lockTask(transaction, { organizationId, consumerId, taskId }));
  return task;
}

const consumerActor = ({ consumerId, name }: ConsumerCaller): RoboticsAction["actor"] => ({
  kind: "robotics_consumer",
  id: consumerId,
  name,
});

/**
 * Expires offers past their deadline and returns how many. The number is limited, because the next check expires the
 * rest. Several processes share the work: each skips what another one has locked.
 */
export async function expireOffers(deps: Deps): Promise<number> {
  let total = 0;
  for (let turn = 0; turn < ROBOTICS_LIMITS.transactionsPerCheck; turn += 1) {
    const expired = await expireSome(deps);
    total += expired;
    if (expired < ROBOTICS_LIMITS.offersPerTransaction) break;
  }
  return total;
}

async function expireSome({ database, metrics }: Deps): Promise<number> {
  const expired = await database.begin(async (transaction) => {
    const due = await sql.lockDueTasks(transaction, ROBOTICS_LIMITS.offersPerTransaction);
    const events: OutboxRow[] = [];
    for (const task of due) {
      events.push(...(await moveTask(transaction, task, { type: "EXPIRE", actor: SYSTEM_ACTOR })).events);
    }
    await insertOutboxRows(transaction, events);
    return due.length;
  });
  if (expired > 0) metrics.taskChanges.add({ status: "expired" }, expired);
  return expired;
}

interface Move {
  readonly type: ServingTaskEvent["type"];
  readonly actor: RoboticsAction["actor"];
  /** Why the owner cancels. */
  readonly reason?: string;
}

/** The result of a transaction: the task after it, and the refusal of the request where there is one. */
interface Moved {
  readonly task: sql.TaskRow;
  readonly refusal?: RefusedError;
  /** The status that the task has come to; undefined when nothing changed. */
  readonly change?: ServingTaskStatus;
  readonly events: readonly OutboxRow[];
}

/** The events for the consumer. The consumer accepts and completes a task itself, so it gets no event for these. */
const EVENT_TYPES = { CANCEL: "serving_task.cancelled", EXPIRE: "serving_task.expired" } as const;

/**
 * Moves a task that the transaction has locked. A task that has ended, or that does not allow the move, is refused with
 * `task_not_actionable` and its status. An offer past its deadline expires first, whatever the move is: the deadline
 * counts before the service has checked it.
 */
async function moveTask(transaction: Transaction, task: sql.TaskRow, move: Move): Promise<Moved> {
  if (task.status === "offered" && move.type !== "EXPIRE" && (await sql.isPastDeadline(transaction, task.task_id))) {
    const expired = await moveTask(transaction, task, { type: "EXPIRE", actor: SYSTEM_ACTOR });
    return { ...expired, refusal: refusalIn(expired.task.status, move.type) };
  }
  const status = nextTaskStatus(task.status, move.type);
  if (status === undefined) return { task, refusal: refusalIn(task.status, move.type), events: [] };
  const { type, actor, reason } = move;
  const moved = await sql.setTaskStatus(transaction, task.task_id, { status, cancelReason: reason ?? null });
  await recordRoboticsAction(transaction, {
    organizationId: task.organization_id,
    actor,
    action: `serving_task_${status}`,
    subject: { kind: "serving_task", id: task.task_id },
    data: { display_number: task.display_number, ...(reason === undefined ? {} : { reason }) },
  });
  const events = type === "CANCEL" || type === "EXPIRE" ? [taskEvent(moved, EVENT_TYPES[type])] : [];
  return { task: moved, change: status, events };
}

/** A late acceptance has a separate code, because it can easily happen to a robot. */
function refusalIn(status: ServingTaskStatus, type: Move["type"]): RefusedError {
  const code = type === "ACCEPT" && status === "expired" ? "task_expired" : "task_not_actionable";
  return new RefusedError({ code, status });
}

/**
 * Runs a transaction that may move one task. It writes the events last, because that takes a lock, and throws a refusal
 * after the commit: an offer that is refused because it has expired stays expired.
 */
async function runMove(
  { database, metrics }: Deps,
  move: (transaction: Transaction) => Promise<Moved>,
): Promise<TaskReply> {
  const { task, refusal, change } = await database.begin(async (transaction) => {
    const moved = await move(transaction);
    await insertOutboxRows(transaction, moved.events);
    return moved;
  });
  if (change !== undefined) metrics.taskChanges.add({ status: change });
  if (refusal !== undefined) throw refusal;
  return { task: taskOf(task) };
}

function taskOf(row: sql.TaskRow): messages.ServingTask {
  return {
    taskId: row.task_id,
    displayNumber: row.display_number,
    filialId: row.filial_id,
    consumerId: row.consumer_id,
    leg: row.leg,
    status: row.status,
    manifest: row.manifest,
    destination: row.destination,
    offeredAtMs: row.offered_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
    acceptedAtMs: row.accepted_at?.getTime() ?? null,
    endedAtMs: row.ended_at?.getTime() ?? null,
    cancelReason: row.cancel_reason,
  };
}
