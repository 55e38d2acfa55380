/** Accounts, payments and callbacks of the sandbox provider. */
import type { Database, Queryable, Transaction } from "../db/pool.ts";
import type { Scenario } from "./magic-amounts.ts";

export interface AccountRow {
  readonly account_id: string;
  readonly secret_generation: number;
  readonly has_previous_secret: boolean;
}

/** Any number that no other advisory lock of this product has. */
const ACCOUNTS_LOCK = 0xacc0;

/** Opens an account, or returns false when there are `most` already. Takes a lock, so that the count is right. */
export async function insertAccount(
  sql: Transaction,
  account: { readonly accountId: string; readonly name: string; readonly apiKeyHash: Buffer; readonly most: number },
): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(${ACCOUNTS_LOCK}, 0)`;
  const inserted = await sql`
    insert into sandbox_provider_accounts (account_id, name, api_key_hash)
    select ${account.accountId}, ${account.name}, ${account.apiKeyHash}
    where (select count(*) from sandbox_provider_accounts) < ${account.most}`;
  return inserted.count === 1;
}

const accountColumns = (sql: Queryable) => sql`
  account_id, secret_generation, coalesce(previous_secret_until > now(), false) as has_previous_secret`;

export async function findAccountByKey(sql: Queryable, apiKeyHash: Buffer): Promise<AccountRow | undefined> {
  const [row] = await sql<AccountRow[]>`
    select ${accountColumns(sql)} from sandbox_provider_accounts where api_key_hash = ${apiKeyHash}`;
  return row;
}

export async function findAccount(sql: Queryable, accountId: string): Promise<AccountRow | undefined> {
  const [row] = await sql<AccountRow[]>`
    select ${accountColumns(sql)} from sandbox_provider_accounts where account_id = ${accountId}`;
  return row;
}

/** Starts the next generation of the secret. The previous one signs too for `overlapMs`. */
export async function nextSecretGeneration(sql: Queryable, accountId: string, overlapMs: number): Promise<number> {
  const [row] = await sql<[{ secret_generation: number }]>`
    update sandbox_provider_accounts set secret_generation = secret_generation + 1,
      previous_secret_until = now() + ${overlapMs}::float8 * interval '1 ms'
    where account_id = ${accountId} returning secret_generation`;
  return row.secret_generation;
}

/**
 * Allocates the number of the statement's next line. The account is locked until the transaction ends, so lines have no
 * gaps.
 */
export async function allocateStatementLine(sql: Transaction, accountId: string): Promise<number> {
  const [row] = await sql<[{ statement_lines: number }]>`
    update sandbox_provider_accounts set statement_lines = statement_lines + 1
    where account_id = ${accountId} returning statement_lines`;
  return row.statement_lines;
}

const PAYMENT_STATUSES = ["pending", "paid", "declined", "cancelled", "expired"] as const;
type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** What the provider asserts about a paid payment. */
export interface Asserted {
  readonly reference: string;
  readonly account: string;
  /** A decimal string. */
  readonly amount: string;
  readonly currency: string;
}

export interface PaymentRow {
  readonly payment_id: string;
  readonly account_id: string;
  readonly reference: string;
  readonly amount_minor: string;
  readonly currency: string;
  readonly description: string;
  readonly callback_url: string;
  readonly status: PaymentStatus;
  readonly scenario: Scenario;
  readonly decides_at: Date | null;
  readonly expires_at: Date;
  readonly decided_at: Date | null;
  readonly asserted: Asserted | null;
  readonly statement_line: number | null;
  /** Of the request for which the providers service created it. */
  readonly request_id: string | null;
}

const paymentColumns = (sql: Queryable) => sql`
  payment_id, account_id, reference, amount_minor::text as amount_minor, currency, description, callback_url, status,
  scenario, decides_at, expires_at, decided_at, asserted, statement_line, request_id`;

export interface NewPayment {
  readonly paymentId: string;
  readonly accountId: string;
  readonly reference: string;
  readonly amountMinor: string;
  readonly currency: string;
  readonly description: string;
  readonly callbackUrl: string;
  readonly scenario: Scenario;
  readonly decidesAtMs: number;
  readonly expiresAtMs: number;
  readonly requestId: string | null;
}

/** The time of the installation, in milliseconds: the clock of this process's machine may be wrong. */
export async function readNowMs(sql: Queryable): Promise<number> {
  const [row] = await sql<[{ now_ms: number }]>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms`;
  return Math.floor(row.now_ms);
}

const at = (sql: Queryable, ms: number) => sql`to_timestamp(${ms}::float8 / 1000)`;

/** Stores the payment. Returns false when the account has one with that reference. */
export async function insertPayment(sql: Queryable, payment: NewPayment): Promise<boolean> {
  const inserted = await sql`
    insert into sandbox_provider_payments (payment_id, account_id, reference, amount_minor, currency, description,
      callback_url, scenario, decides_at, expires_at, request_id)
    values (${payment.paymentId}, ${payment.accountId}, ${payment.reference}, ${payment.amountMinor}::bigint,
      ${payment.currency}, ${payment.description}, ${payment.callbackUrl}, ${payment.scenario},
      ${at(sql, payment.decidesAtMs)}, ${at(sql, payment.expiresAtMs)}, ${payment.requestId})
    on conflict (account_id, reference) do nothing`;
  return inserted.count === 1;
}

export interface PaymentKey {
  readonly accountId: string;
  readonly reference: string;
}

export async function findByReference(sql: Queryable, key: PaymentKey): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${paymentColumns(sql)} from sandbox_provider_payments
    where account_id = ${key.accountId} and reference = ${key.reference}`;
  return row;
}

export async function findPayment(sql: Queryable, paymentId: string): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${paymentColumns(sql)} from sandbox_provider_payments where payment_id = ${paymentId}`;
  return row;
}

/** The payment, locked until the transaction ends. */
export async function lockPayment(sql: Transaction, paymentId: string): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${paymentColumns(sql)} from sandbox_provider_payments where payment_id = ${paymentId} for update`;
  return row;
}

/** Milliseconds until the next decision or callback is due; zero or less when it is due. Undefined when none waits. */
export async function readDueInMs(sql: Queryable): Promise<number | undefined> {
  const [row] = await sql<[{ due_in_ms: number | null }]>`
    select extract(epoch from least(
      (select min(decides_at) from sandbox_provider_payments where decides_at is not null),
      (select min(due_at) from sandbox_provider_callbacks where done_at is null)) - now())::float8 * 1000 as due_in_ms`;
  return row.due_in_ms ?? undefined;
}

/** Up to `limit` payments whose decision is due, locked until the transaction ends. Other transactions skip them. */
export async function takeDeciding(sql: Transaction, limit: number): Promise<PaymentRow[]> {
  return sql<PaymentRow[]>`
    select ${paymentColumns(sql)} from sandbox_provider_payments where decides_at <= now()
    order by decides_at limit ${limit} for update skip locked`;
}

export async function setDecision(
  sql: Transaction,
  paymentId: string,
  decision: {
    readonly status: PaymentStatus;
    readonly asserted: Asserted | null;
    readonly statementLine: number | null;
  },
): Promise<void> {
  const { status, asserted, statementLine } = decision;
  await sql`
    update sandbox_provider_payments set status = ${status}, decided_at = now(), decides_at = null,
      asserted = ${asserted === null ? null : sql.json({ ...asserted })}, statement_line = ${statementLine}
    where payment_id = ${paymentId}`;
}

export async function setDecidesInMs(sql: Queryable, paymentId: string, inMs: number): Promise<void> {
  await sql`
    update sandbox_provider_payments set decides_at = now() + ${inMs}::float8 * interval '1 ms'
    where payment_id = ${paymentId}`;
}

/** The account's paid payments after the line `after`, in the order of the lines. */
export async function selectStatement(
  sql: Queryable,
  page: { readonly accountId: string; readonly after: number; readonly limit: number },
): Promise<PaymentRow[]> {
  return sql<PaymentRow[]>`
    select ${paymentColumns(sql)} from sandbox_provider_payments
    where account_id = ${page.accountId} and statement_line > ${page.after}
    order by statement_line limit ${page.limit}`;
}

/** Deletes up to `rows` payments that are older than `olderThanDays`, with their callbacks. Returns how many. */
export async function deleteOldPayments(sql: Transaction, olderThanDays: number, rows: number): Promise<number> {
  const old = await sql<{ payment_id: string }[]>`
    select payment_id from sandbox_provider_payments
    where created_at < now() - make_interval(days => ${olderThanDays}) limit ${rows} for update skip locked`;
  const ids = old.map((row) => row.payment_id);
  await sql`delete from sandbox_provider_callbacks where payment_id = any(${ids}::text[])`;
  await sql`delete from sandbox_provider_payments where payment_id = any(${ids}::text[])`;
  return ids.length;
}

export interface CallbackRow {
  readonly callback_id: number;
  readonly account_id: string;
  readonly callback_url: string;
  readonly body: string;
  readonly attempts: number;
  /** Of the payment's request. */
  readonly request_id: string | null;
}

export async function insertCallback(
  sql: Queryable,
  callback: { readonly paymentId: string; readonly eventId: string; readonly body: string; readonly dueInMs: number },
): Promise<void> {
  await sql`
    insert into sandbox_provider_callbacks (payment_id, event_id, body, due_at)
    values (${callback.paymentId}, ${callback.eventId}, ${callback.body},
      now() + ${callback.dueInMs}::float8 * interval '1 ms')`;
}

/**
 * Takes up to `limit` due callbacks for `claimMs`. Other processes skip them, and they are due again when this process
 * dies. A callback of a payment is due after the ones before it are done; copies of one event go at once.
 */
export async function takeDueCallbacks(database: Database, limit: number, claimMs: number): Promise<CallbackRow[]> {
  return database<CallbackRow[]>`
    with due as (
      select callback_id from sandbox_provider_callbacks c where done_at is null and due_at <= now()
        and not exists (
          select from sandbox_provider_callbacks earlier
          where earlier.payment_id = c.payment_id and earlier.callback_id < c.callback_id
            and earlier.event_id <> c.event_id and earlier.done_at is null
        )
      order by due_at, callback_id limit ${limit} for update skip locked
    )
    update sandbox_provider_callbacks c
    set due_at = now() + ${claimMs}::float8 * interval '1 ms', attempts = c.attempts + 1
    from due, sandbox_provider_payments p
    where c.callback_id = due.callback_id and p.payment_id = c.payment_id
    returning c.callback_id, p.account_id, p.callback_url, c.body, c.attempts, p.request_id`;
}

/** Ends a callback that was delivered or abandoned. */
export async function finishCallback(sql: Queryable, callback: CallbackRow, answer: string): Promise<void> {
  await sql`
    update sandbox_provider_callbacks set done_at = now(), last_answer = ${answer}
    where callback_id = ${callback.callback_id} and attempts = ${callback.attempts}`;
}

export async function postponeCallback(
  sql: Queryable,
  callback: CallbackRow,
  again: { readonly inMs: number; readonly answer: string },
): Promise<void> {
  await sql`
    update sandbox_provider_callbacks
    set due_at = now() + ${again.inMs}::float8 * interval '1 ms', last_answer = ${again.answer}
    where callback_id = ${callback.callback_id} and attempts = ${callback.attempts}`;
}
