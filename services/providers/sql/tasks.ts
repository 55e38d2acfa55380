/** What is still to be done about payments. */
import { moneyName } from "../../bus/messages/intents.ts";
import type { ProviderKind } from "../../bus/messages/provider-configs.ts";
import type { Database, Json, Queryable, Transaction } from "../../db/pool.ts";
import { PROVIDER_LIMITS } from "../limits.ts";

export const TASK_KINDS = ["confirm", "fail", "clear", "differ", "poll", "withdraw"] as const;
export type TaskKind = (typeof TASK_KINDS)[number];

/** A task that this process has taken. `attempts` counts this one, and fences the process that took the task before. */
export interface Task {
  readonly intentId: number;
  readonly kind: TaskKind;
  /** The payment's provider config and its kind: tasks of each have a share of the slots. */
  readonly configId: number;
  readonly providerKind: ProviderKind;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly attempts: number;
  readonly createdAt: Date;
}

interface TaskRow {
  readonly intent_id: number;
  readonly kind: TaskKind;
  readonly config_id: number;
  readonly provider_kind: ProviderKind;
  readonly detail: Record<string, unknown>;
  readonly attempts: number;
  readonly created_at: Date;
}

const toTask = (row: TaskRow): Task => ({
  intentId: row.intent_id,
  kind: row.kind,
  configId: row.config_id,
  providerKind: row.provider_kind,
  detail: row.detail,
  attempts: row.attempts,
  createdAt: row.created_at,
});

/** The columns of a `TaskRow` in a statement that inserts into `provider_tasks as t`. */
const taskColumns = (sql: Queryable) => sql`
  t.intent_id, t.kind, t.detail, t.attempts, t.created_at,
  (select p.config_id from provider_payments p where p.intent_id = t.intent_id) as config_id,
  (select c.kind from provider_payments p join provider_configs c using (config_id) where p.intent_id = t.intent_id)
    as provider_kind`;

/**
 * Writes a task, due after `dueInMs`; a task of that kind that is there already stays as it is. Returns the task when it
 * is new.
 */
export async function insertTask(
  sql: Queryable,
  task: {
    readonly intentId: number;
    readonly kind: TaskKind;
    readonly detail?: Readonly<Record<string, unknown>>;
    readonly dueInMs: number;
    /** The writer runs it at once; it is due for others only when this process has died. */
    readonly isTaken?: boolean;
  },
): Promise<Task | undefined> {
  const [row] = await sql<TaskRow[]>`
    insert into provider_tasks as t (intent_id, kind, detail, due_at, attempts)
    values (${task.intentId}, ${task.kind}, ${sql.json((task.detail ?? {}) as Json)},
      now() + ${task.dueInMs}::float8 * interval '1 ms', ${task.isTaken === true ? 1 : 0})
    on conflict (intent_id, kind) do nothing
    returning ${taskColumns(sql)}`;
  return row === undefined ? undefined : toTask(row);
}

/**
 * The money of a payment has moved: stores that, ends the polls and writes the task `confirm`, taken by this process, in one
 * round trip. The caller has locked the payment and has checked that it is unpaid. Undefined where the task exists already.
 */
export async function takeAsPaid(
  sql: Transaction,
  { intentId, providerReference, dueInMs }: PaidPayment & { readonly dueInMs: number },
): Promise<Task | undefined> {
  const [row] = await sql<TaskRow[]>`
    with paid as (
      update provider_payments p set paid_at = clock_timestamp(), paid_reference = ${providerReference},
        paid_money_name = money_name_of_payment(p, ${moneyName(providerReference, "")}),
        provider_reference = case when provider_reference = '' then ${providerReference} else provider_reference end
      where intent_id = ${intentId} and paid_at is null
    ), polls as (
      update provider_tasks set done_at = now(), outcome = 'paid'
      where intent_id = ${intentId} and kind = 'poll' and done_at is null
    )
    insert into provider_tasks as t (intent_id, kind, detail, due_at, attempts)
    values (${intentId}, 'confirm', ${sql.json({ providerReference })}, now() + ${dueInMs}::float8 * interval '1 ms', 1)
    on conflict (intent_id, kind) do nothing
    returning ${taskColumns(sql)}`;
  return row === undefined ? undefined : toTask(row);
}

interface PaidPayment {
  readonly intentId: number;
  /** The provider's reference of the money. */
  readonly providerReference: string;
}

/**
 * Writes a task that is to run also when it ran before, as taken by this process: due for others after `dueInMs`. A process
 * that runs the earlier one loses it; its notes (`noteInTask`) stay.
 */
export async function armTask(
  sql: Queryable,
  task: {
    readonly intentId: number;
    readonly kind: TaskKind;
    readonly detail: Readonly<Record<string, unknown>>;
    readonly dueInMs: number;
  },
): Promise<Task> {
  const [row] = await sql<[TaskRow]>`
    insert into provider_tasks as t (intent_id, kind, detail, due_at, attempts)
    values (${task.intentId}, ${task.kind}, ${sql.json(task.detail as Json)},
      now() + ${task.dueInMs}::float8 * interval '1 ms', 1)
    on conflict (intent_id, kind) do update set due_at = excluded.due_at, attempts = t.attempts + 1, created_at = now(),
      detail = case when t.done_at is null then t.detail || excluded.detail else excluded.detail end,
      done_at = null, outcome = null
    returning ${taskColumns(sql)}`;
  return toTask(row);
}

/** Adds to the detail of a task, for a later attempt; false when another process has taken the task since. */
export async function noteInTask(
  sql: Queryable,
  task: Task,
  note: Readonly<Record<string, unknown>>,
): Promise<boolean> {
  const noted = await sql`
    update provider_tasks set detail = detail || ${sql.json(note as Json)}::jsonb
    where intent_id = ${task.intentId} and kind = ${task.kind} and attempts = ${task.attempts} and done_at is null`;
  return noted.count === 1;
}

/** The newest notice to the station, from the task's detail; undefined where there was none. */
export async function findNewestNotice(sql: Queryable, intentId: number): Promise<unknown> {
  const [row] = await sql<{ notice: unknown }[]>`
    select detail -> 'issues' -> -1 as notice from provider_tasks where intent_id = ${intentId} and kind = 'differ'`;
  return row?.notice ?? undefined;
}

/** As `armTask`, for a notice of an issue: notices that wait stay before it, up to `atMost`, so that none of two is lost. */
export async function armNotice(
  sql: Queryable,
  task: {
    readonly intentId: number;
    readonly notice: Readonly<Record<string, unknown>>;
    readonly dueInMs: number;
    readonly atMost: number;
  },
): Promise<Task> {
  const notices = sql.json([task.notice] as Json);
  const [row] = await sql<[TaskRow]>`
    insert into provider_tasks as t (intent_id, kind, detail, due_at, attempts)
    values (${task.intentId}, 'differ', jsonb_build_object('issues', ${notices}::jsonb),
      now() + ${task.dueInMs}::float8 * interval '1 ms', 1)
    on conflict (intent_id, kind) do update set due_at = excluded.due_at, attempts = t.attempts + 1, created_at = now(),
      done_at = null, outcome = null,
      detail = case
        when t.done_at is not null then excluded.detail
        when t.detail -> 'issues' @> ${notices}::jsonb then t.detail
        when jsonb_array_length(t.detail -> 'issues') >= ${task.atMost} then t.detail
        else jsonb_build_object('issues', (t.detail -> 'issues') || ${notices}::jsonb)
      end
    returning ${taskColumns(sql)}`;
  return toTask(row);
}

/** Whether any task is due. */
export async function hasDueTask(sql: Queryable): Promise<boolean> {
  const rows = await sql`select from provider_tasks where done_at is null and due_at <= now() limit 1`;
  return rows.count > 0;
}

/** Which due tasks a process has room for. */
interface TaskRoom {
  readonly kinds: readonly TaskKind[];
  /** Tasks in all. */
  readonly limit: number;
  /** Tasks of each config, unless `ofConfigs` has fewer: the configs with tasks under way. */
  readonly perConfig: number;
  readonly ofConfigs: readonly { readonly key: number; readonly free: number }[];
  /** Tasks of each kind of provider, unless `ofKinds` has fewer: the kinds with tasks under way. */
  readonly perKind: number;
  readonly ofKinds: readonly { readonly group: ProviderKind; readonly room: number }[];
  /** The last of a kind are for its configs that have no task under way. */
  readonly keptForNewConfigs: number;
}

/**
 * Takes due tasks for `claimMs`, of each config and each kind of provider only as many as there is room for: the longest due
 * of each config first, then the second of each, so that one with many leaves room for the others. Other processes skip
 * them; when this process dies, they are due again after that time.
 */
export async function takeDueTasks(database: Database, room: TaskRoom, claimMs: number): Promise<Task[]> {
  const { kinds, limit, perConfig, ofConfigs, perKind, ofKinds, keptForNewConfigs } = room;
  const configIds = ofConfigs.map(({ key }) => key);
  const free = ofConfigs.map((each) => each.free);
  const providerKinds = ofKinds.map(({ group }) => group);
  const rooms = ofKinds.map((each) => each.room);
  const rows = await database<TaskRow[]>`
    with due as (
      select t.intent_id, t.kind, t.due_at, p.config_id, c.kind as provider_kind,
        coalesce(provider.room, ${perKind}) as room,
        least(
          coalesce(holder.free, ${perConfig}),
          greatest(
            coalesce(provider.room, ${perKind}) - ${keptForNewConfigs}::int,
            case when holder.config_id is null then 1 else 0 end
          )
        ) as free
      from provider_tasks t join provider_payments p using (intent_id) join provider_configs c using (config_id)
        left join unnest(${configIds}::bigint[], ${free}::int[]) as holder (config_id, free) using (config_id)
        left join unnest(${providerKinds}::text[], ${rooms}::int[]) as provider (kind, room) on provider.kind = c.kind
      where t.done_at is null and t.due_at <= now() and t.kind = any(${[...kinds]}::text[])
    ), candidates as (
      select * from due where free > 0 and room > 0 order by due_at limit ${PROVIDER_LIMITS.dueTasksRead}
    ), of_configs as (
      select *, row_number() over (partition by config_id order by due_at) as place from candidates
    ), of_kinds as (
      select *, row_number() over (partition by provider_kind order by place, due_at) as place_of_kind
      from of_configs where place <= free
    ), chosen as (
      select intent_id, kind, config_id, provider_kind from of_kinds
      where place_of_kind <= room order by place, due_at limit ${limit}
    ), held as (
      select t.intent_id, t.kind, chosen.config_id, chosen.provider_kind
      from provider_tasks t join chosen using (intent_id, kind)
      where t.done_at is null and t.due_at <= now() for update of t skip locked
    )
    update provider_tasks t set due_at = now() + ${claimMs}::float8 * interval '1 ms', attempts = t.attempts + 1
    from held where t.intent_id = held.intent_id and t.kind = held.kind
    returning t.intent_id, t.kind, t.detail, t.attempts, t.created_at, held.config_id, held.provider_kind`;
  return rows.map(toTask);
}

/** The task is done. Without effect when another has taken it since. */
export async function finishTask(sql: Queryable, task: Task, outcome: string): Promise<void> {
  await sql`
    update provider_tasks set done_at = now(), outcome = ${outcome}
    where intent_id = ${task.intentId} and kind = ${task.kind} and attempts = ${task.attempts} and done_at is null`;
}

/** The task is due again after `pauseMs`. Without effect when another has taken it since. */
export async function postponeTask(sql: Queryable, task: Task, pauseMs: number): Promise<void> {
  await sql`
    update provider_tasks set due_at = now() + ${pauseMs}::float8 * interval '1 ms'
    where intent_id = ${task.intentId} and kind = ${task.kind} and attempts = ${task.attempts} and done_at is null`;
}

/** Changes the due time of a task that no process has taken yet. */
export async function moveUntakenTask(
  sql: Queryable,
  key: { readonly intentId: number; readonly kind: TaskKind; readonly dueInMs: number },
): Promise<void> {
  await sql`
    update provider_tasks set due_at = now() + ${key.dueInMs}::float8 * interval '1 ms'
    where intent_id = ${key.intentId} and kind = ${key.kind} and attempts = 0 and done_at is null`;
}

/** Ends a task that is no longer needed. */
export async function dropTask(
  sql: Queryable,
  key: { readonly intentId: number; readonly kind: TaskKind; readonly outcome: string },
): Promise<void> {
  await sql`
    update provider_tasks set done_at = now(), outcome = ${key.outcome}
    where intent_id = ${key.intentId} and kind = ${key.kind} and done_at is null`;
}

export interface DueTasks {
  /** Counted to the limit. */
  readonly tasks: number;
  readonly oldestAgeMs: number;
}

/** How much is due and not taken. What is taken is due later, so a service that keeps up has next to nothing here. */
export async function summarizeDueTasks(sql: Queryable, limit: number): Promise<DueTasks> {
  const [row] = await sql<[{ tasks: number; oldest_age_ms: number }]>`
    select count(*) as tasks,
      coalesce(extract(epoch from clock_timestamp() - min(due_at)) * 1000, 0)::float8 as oldest_age_ms
    from (
      select due_at from provider_tasks where done_at is null and due_at <= now() order by due_at limit ${limit}
    ) due`;
  return { tasks: row.tasks, oldestAgeMs: Math.max(0, row.oldest_age_ms) };
}

/** Whether there is still something to do. */
export async function hasOpenTask(
  sql: Queryable,
  key: { readonly intentId: number; readonly kind: TaskKind },
): Promise<boolean> {
  const rows = await sql`
    select 1 from provider_tasks where intent_id = ${key.intentId} and kind = ${key.kind} and done_at is null`;
  return rows.length > 0;
}

export async function deleteOldTasks(sql: Queryable, olderThanDays: number, rows: number): Promise<number> {
  const deleted = await sql`
    delete from provider_tasks where (intent_id, kind) in (
      select intent_id, kind from provider_tasks
      where done_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}
