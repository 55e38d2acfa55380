/** The tasks of provider payments: questions to the provider, and commands to the station. */
import { moneyName } from "../../bus/messages/intents.ts";
import type { ProviderKind } from "../../bus/messages/provider-configs.ts";
import type { Database, Json, Queryable, Transaction } from "../../db/pool.ts";
import { currentRequestId } from "../../runtime/log.ts";
import { PROVIDER_LIMITS } from "../limits.ts";

export const TASK_KINDS = ["confirm", "fail", "clear", "differ", "poll", "withdraw"] as const;
export type TaskKind = (typeof TASK_KINDS)[number];

/**
 * A task that this process has taken. `attempts` includes the current attempt. A process that took the task earlier has a
 * lower number, so its updates change nothing.
 */
export interface Task {
  readonly intentId: number;
  readonly kind: TaskKind;
  /** The payment's provider config, and the config's kind of provider: each has a share of the slots. */
  readonly configId: number;
  readonly providerKind: ProviderKind;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly attempts: number;
  readonly createdAt: Date;
  /** Of the request that stored the task, or started it again. */
  readonly requestId?: string | undefined;
}

interface TaskRow {
  readonly intent_id: number;
  readonly kind: TaskKind;
  readonly config_id: number;
  readonly provider_kind: ProviderKind;
  readonly detail: Record<string, unknown>;
  readonly attempts: number;
  readonly created_at: Date;
  readonly request_id: string | null;
}

const toTask = (row: TaskRow): Task => ({
  intentId: row.intent_id,
  kind: row.kind,
  configId: row.config_id,
  providerKind: row.provider_kind,
  detail: row.detail,
  attempts: row.attempts,
  createdAt: row.created_at,
  requestId: row.request_id ?? undefined,
});

/** The columns of a `TaskRow` in a statement that inserts into `provider_tasks as t`. */
const taskColumns = (sql: Queryable) => sql`
  t.intent_id, t.kind, t.detail, t.attempts, t.created_at, t.request_id,
  (select p.config_id from provider_payments p where p.intent_id = t.intent_id) as config_id,
  (select c.kind from provider_payments p join provider_configs c using (config_id) where p.intent_id = t.intent_id)
    as provider_kind`;

/**
 * Inserts a task that is due after `dueInMs`, and returns it. Where the intent has a task of this kind already, changes
 * nothing and returns undefined.
 */
export async function insertTask(
  sql: Queryable,
  task: {
    readonly intentId: number;
    readonly kind: TaskKind;
    readonly detail?: Readonly<Record<string, unknown>>;
    readonly dueInMs: number;
    /** This process runs the task at once. Other processes take it after `dueInMs`, when this process has died. */
    readonly isTaken?: boolean;
  },
): Promise<Task | undefined> {
  const [row] = await sql<TaskRow[]>`
    insert into provider_tasks as t (intent_id, kind, detail, due_at, attempts, request_id)
    values (${task.intentId}, ${task.kind}, ${sql.json((task.detail ?? {}) as Json)},
      now() + ${task.dueInMs}::float8 * interval '1 ms', ${task.isTaken === true ? 1 : 0},
      ${currentRequestId() ?? null})
    on conflict (intent_id, kind) do nothing
    returning ${taskColumns(sql)}`;
  return row === undefined ? undefined : toTask(row);
}

/**
 * Stores that the money of a payment has moved, ends the polls, and inserts the task `confirm` as taken by this process, all
 * in one round trip. The caller has locked the payment and has checked that it is unpaid. Returns undefined where the task
 * exists already.
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
    insert into provider_tasks as t (intent_id, kind, detail, due_at, attempts, request_id)
    values (${intentId}, 'confirm', ${sql.json({ providerReference })}, now() + ${dueInMs}::float8 * interval '1 ms', 1,
      ${currentRequestId() ?? null})
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
 * Inserts a task as taken by this process, or starts it again where the intent has a task of this kind already. Other
 * processes take it after `dueInMs`. A process that still runs the earlier attempt loses the task. An unfinished task keeps
 * its notes (`noteInTask`).
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
    insert into provider_tasks as t (intent_id, kind, detail, due_at, attempts, request_id)
    values (${task.intentId}, ${task.kind}, ${sql.json(task.detail as Json)},
      now() + ${task.dueInMs}::float8 * interval '1 ms', 1, ${currentRequestId() ?? null})
    on conflict (intent_id, kind) do update set due_at = excluded.due_at, attempts = t.attempts + 1, created_at = now(),
      detail = case when t.done_at is null then t.detail || excluded.detail else excluded.detail end,
      request_id = excluded.request_id, done_at = null, outcome = null
    returning ${taskColumns(sql)}`;
  return toTask(row);
}

/** Adds to the detail of a task, for a later attempt. Returns false when another process has taken the task since. */
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

/**
 * Like `armTask`, for a notice of an issue. Notices that still wait stay in the task, before this one. A task that has
 * `atMost` notices drops this one.
 */
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
    insert into provider_tasks as t (intent_id, kind, detail, due_at, attempts, request_id)
    values (${task.intentId}, 'differ', jsonb_build_object('issues', ${notices}::jsonb),
      now() + ${task.dueInMs}::float8 * interval '1 ms', 1, ${currentRequestId() ?? null})
    on conflict (intent_id, kind) do update set due_at = excluded.due_at, attempts = t.attempts + 1, created_at = now(),
      request_id = excluded.request_id, done_at = null, outcome = null,
      detail = case
        when t.done_at is not null then excluded.detail
        when t.detail -> 'issues' @> ${notices}::jsonb then t.detail
        when jsonb_array_length(t.detail -> 'issues') >= ${task.atMost} then t.detail
        else jsonb_build_object('issues', (t.detail -> 'issues') || ${notices}::jsonb)
      end
    returning ${taskColumns(sql)}`;
  return toTask(row);
}

export async function hasDueTask(sql: Queryable): Promise<boolean> {
  const rows = await sql`select from provider_tasks where done_at is null and due_at <= now() limit 1`;
  return rows.count > 0;
}

/** Which due tasks a process has room for. */
interface TaskRoom {
  readonly kinds: readonly TaskKind[];
  /** Tasks of all configs together. */
  readonly limit: number;
  /** Tasks of each config that is not in `ofConfigs`. */
  readonly perConfig: number;
  /** The configs with tasks under way, and how many more each may have. */
  readonly ofConfigs: readonly { readonly key: number; readonly free: number }[];
  /** Tasks of each kind of provider that is not in `ofKinds`. */
  readonly perKind: number;
  /** The kinds of providers with tasks under way, and how many more each may have. */
  readonly ofKinds: readonly { readonly group: ProviderKind; readonly room: number }[];
  /** The last tasks of a kind of provider: only its configs without a task under way may use this room. */
  readonly keptForNewConfigs: number;
}

/**
 * Takes due tasks for `claimMs`: of each config and of each kind of provider only as many as `room` has. It takes the task
 * of each config that is due the longest, then the second one of each config. So a config with many tasks leaves room for
 * the others. Other processes skip the taken tasks; when this process dies, the tasks are due again after `claimMs`.
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
    returning t.intent_id, t.kind, t.detail, t.attempts, t.created_at, t.request_id, held.config_id,
      held.provider_kind`;
  return rows.map(toTask);
}

/** Stores that the task is done. Changes nothing when another process has taken the task since. */
export async function finishTask(sql: Queryable, task: Task, outcome: string): Promise<void> {
  await sql`
    update provider_tasks set done_at = now(), outcome = ${outcome}
    where intent_id = ${task.intentId} and kind = ${task.kind} and attempts = ${task.attempts} and done_at is null`;
}

/** Makes the task due again after `pauseMs`. Changes nothing when another process has taken the task since. */
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

/** Ends the task that polls the provider about the intent. */
export async function dropPoll(
  sql: Queryable,
  { intentId, outcome }: { readonly intentId: number; readonly outcome: string },
): Promise<void> {
  await sql`
    update provider_tasks set done_at = now(), outcome = ${outcome}
    where intent_id = ${intentId} and kind = 'poll' and done_at is null`;
}

export interface OpenTasks {
  /** Tasks that are due and that no process has taken: at most the `limit` of the count. */
  readonly due: number;
  readonly oldestDueAgeMs: number;
  /** Since the oldest `confirm` that is open was stored: taking or postponing a task changes only when it is due. */
  readonly oldestConfirmationAgeMs: number;
}

/**
 * Summarizes the open tasks. A taken task is due later, so few tasks are due in normal work. The index `provider_tasks_due`
 * has the open tasks alone, so the oldest `confirm` is found among them and not among those of the last 30 days.
 */
export async function summarizeOpenTasks(sql: Queryable, limit: number): Promise<OpenTasks> {
  const [row] = await sql<[{ due: number; oldest_due_age_ms: number; oldest_confirmation_age_ms: number }]>`
    select count(*) as due,
      coalesce(extract(epoch from clock_timestamp() - min(due_at)) * 1000, 0)::float8 as oldest_due_age_ms,
      coalesce(extract(epoch from clock_timestamp() - (
        select min(created_at) from provider_tasks where done_at is null and kind = 'confirm'
      )) * 1000, 0)::float8 as oldest_confirmation_age_ms
    from (
      select due_at from provider_tasks where done_at is null and due_at <= now() order by due_at limit ${limit}
    ) due`;
  return {
    due: row.due,
    oldestDueAgeMs: Math.max(0, row.oldest_due_age_ms),
    oldestConfirmationAgeMs: Math.max(0, row.oldest_confirmation_age_ms),
  };
}

export async function hasOpenTask(
  sql: Queryable,
  key: { readonly intentId: number; readonly kind: TaskKind },
): Promise<boolean> {
  const rows = await sql`
    select 1 from provider_tasks where intent_id = ${key.intentId} and kind = ${key.kind} and done_at is null`;
  return rows.length > 0;
}

/** Leaves out a task that another transaction takes again. */
export async function deleteOldTasks(sql: Queryable, olderThanDays: number, rows: number): Promise<number> {
  const deleted = await sql`
    delete from provider_tasks where (intent_id, kind) in (
      select intent_id, kind from provider_tasks
      where done_at < now() - make_interval(days => ${olderThanDays}) limit ${rows} for update skip locked)`;
  return deleted.count;
}
