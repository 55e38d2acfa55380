/** Serving tasks. Each operation of a caller is limited to one organization or to one consumer. */
import type { ServingTaskStatus, TaskLeg } from "../../../machines/serving-task.ts";
import type { ServingTask } from "../../bus/messages/serving-tasks.ts";
import type { ExpiredRows, Queryable, Transaction } from "../../db/pool.ts";

export interface TaskRow {
  readonly task_id: number;
  readonly organization_id: number;
  readonly filial_id: number;
  readonly consumer_id: number;
  readonly display_number: number;
  readonly leg: TaskLeg;
  readonly status: ServingTaskStatus;
  readonly manifest: ServingTask["manifest"];
  readonly destination: ServingTask["destination"];
  readonly offered_at: Date;
  readonly expires_at: Date;
  readonly accepted_at: Date | null;
  readonly ended_at: Date | null;
  readonly cancel_reason: string | null;
  readonly request_hash: Buffer | null;
}

/** A task of an organization and, where a consumer asks, of that consumer. */
interface TaskKey {
  readonly organizationId: number;
  readonly consumerId?: number;
  readonly taskId: number;
}

const matches = (sql: Queryable, { organizationId, consumerId, taskId }: TaskKey) => sql`
  organization_id = ${organizationId} and task_id = ${taskId}
  ${consumerId === undefined ? sql`` : sql`and consumer_id = ${consumerId}`}`;

export async function getServingTask(sql: Queryable, key: TaskKey, lock = sql``): Promise<TaskRow | undefined> {
  const [row] = await sql<TaskRow[]>`select * from serving_tasks where ${matches(sql, key)} ${lock}`;
  return row;
}

/**
 * The task, locked until the transaction ends: an acceptance, a cancellation and the deadline come one after another.
 */
export const lockTask = async (tx: Transaction, key: TaskKey): Promise<TaskRow | undefined> =>
  await getServingTask(tx, key, tx`for update`);

/**
 * Compares with the present time and not with the transaction's start, because the transaction may have waited for a
 * lock.
 */
export async function isPastDeadline(sql: Transaction, taskId: number): Promise<boolean> {
  const [row] = await sql<{ is_past: boolean }[]>`
    select expires_at <= clock_timestamp() as is_past from serving_tasks where task_id = ${taskId}`;
  return row?.is_past ?? false;
}

export async function findTaskByKey(
  sql: Queryable,
  { organizationId, idempotencyKey }: { readonly organizationId: number; readonly idempotencyKey: string },
): Promise<TaskRow | undefined> {
  const [row] = await sql<TaskRow[]>`
    select * from serving_tasks where organization_id = ${organizationId} and idempotency_key = ${idempotencyKey}`;
  return row;
}

export async function countOpenTasks(sql: Queryable, consumerId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from serving_tasks
    where consumer_id = ${consumerId} and status in ('offered', 'accepted')`;
  return row.count;
}

interface NewTask {
  readonly organizationId: number;
  readonly filialId: number;
  readonly consumerId: number;
  readonly displayNumber: number;
  readonly leg: TaskLeg;
  readonly manifest: ServingTask["manifest"];
  readonly destination: ServingTask["destination"];
  readonly validForMs: number;
  readonly idempotencyKey: string | undefined;
  readonly requestHash: Buffer;
}

/** Undefined when the organization has used the key for a task already. */
export async function offerServingTask(sql: Transaction, task: NewTask): Promise<TaskRow | undefined> {
  const { idempotencyKey: key = null } = task;
  const [row] = await sql<TaskRow[]>`
    insert into serving_tasks
      (organization_id, filial_id, consumer_id, display_number, leg, manifest, destination, offered_at, expires_at,
        idempotency_key, request_hash)
    select ${task.organizationId}, ${task.filialId}, ${task.consumerId}, ${task.displayNumber}, ${task.leg},
      ${sql.json(task.manifest)}, ${sql.json(task.destination)},
      at, at + ${task.validForMs}::float8 * interval '1 millisecond', ${key}, ${key === null ? null : task.requestHash}
    from date_trunc('milliseconds', clock_timestamp()) as at
    on conflict (organization_id, idempotency_key) do nothing
    returning *`;
  return row;
}

/**
 * The transaction must have locked the task. An acceptance that was decided in time gets no time after the deadline,
 * even when it is written later: no task is accepted after it has expired.
 */
export async function setTaskStatus(
  sql: Transaction,
  taskId: number,
  { status, cancelReason = null }: { readonly status: ServingTaskStatus; readonly cancelReason?: string | null },
): Promise<TaskRow> {
  const isEnd = status !== "accepted";
  const [row] = await sql<[TaskRow]>`
    update serving_tasks
    set status = ${status}, cancel_reason = ${cancelReason},
      ${isEnd ? sql`ended_at = clock_timestamp()` : sql`accepted_at = least(clock_timestamp(), expires_at)`}
    where task_id = ${taskId} returning *`;
  return row;
}

/**
 * Milliseconds until the next open offer expires; zero or less when it has expired. Undefined when no offer is open.
 */
export async function readDueInMs(sql: Queryable): Promise<number | undefined> {
  const [row] = await sql<[{ due_in_ms: number | null }]>`
    select extract(epoch from min(expires_at) - now())::float8 * 1000 as due_in_ms
    from serving_tasks where status = 'offered'`;
  return row.due_in_ms ?? undefined;
}

/** Offers past their deadline that no other transaction has locked, oldest first; locked until the transaction ends. */
export async function lockDueTasks(sql: Transaction, limit: number): Promise<TaskRow[]> {
  return sql<TaskRow[]>`
    select * from serving_tasks where status = 'offered' and expires_at <= now()
    order by expires_at limit ${limit} for update skip locked`;
}

/** A consumer's tasks of one status, or the current ones; oldest first. */
export async function listConsumerTasks(
  sql: Queryable,
  page: {
    readonly consumerId: number;
    readonly status: ServingTaskStatus | undefined;
    readonly sinceId: number;
    readonly limit: number;
  },
): Promise<TaskRow[]> {
  const wanted = page.status === undefined ? sql`status in ('offered', 'accepted')` : sql`status = ${page.status}`;
  return sql<TaskRow[]>`
    select * from serving_tasks
    where consumer_id = ${page.consumerId} and ${wanted} and task_id > ${page.sinceId}
    order by task_id limit ${page.limit}`;
}

/** An organization's tasks, newest first. */
export async function listServingTasks(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly filialId: number | undefined;
    readonly consumerId: number | undefined;
    readonly status: ServingTaskStatus | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<TaskRow[]> {
  const { filialId, consumerId, status, beforeId } = page;
  return sql<TaskRow[]>`
    select * from serving_tasks where organization_id = ${page.organizationId}
      ${filialId === undefined ? sql`` : sql`and filial_id = ${filialId}`}
      ${consumerId === undefined ? sql`` : sql`and consumer_id = ${consumerId}`}
      ${status === undefined ? sql`` : sql`and status = ${status}`}
      ${beforeId === undefined ? sql`` : sql`and task_id < ${beforeId}`}
    order by task_id desc limit ${page.limit}`;
}

/** Returns how many were deleted. */
export async function deleteEndedTasks(sql: Queryable, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const deleted = await sql`
    delete from serving_tasks where task_id in (
      select task_id from serving_tasks
      where ended_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}

/** How long the oldest offer past its deadline has waited to expire; 0 when there is none. */
export async function readOldestDueAgeMs(sql: Queryable): Promise<number> {
  const [row] = await sql<[{ age_ms: number | null }]>`
    select extract(epoch from now() - min(expires_at))::float8 * 1000 as age_ms
    from serving_tasks where status = 'offered' and expires_at <= now()`;
  return row.age_ms ?? 0;
}
