import type { Queryable, Transaction } from "../../db/pool.ts";
import type { Scenario } from "../magic-amounts.ts";

export const PAYMENT_STATUSES = ["pending", "paid", "declined", "cancelled", "expired"] as const;
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** What is said about money that was paid. */
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
}

const columns = (sql: Queryable) => sql`
  payment_id, account_id, reference, amount_minor::text as amount_minor, currency, description, callback_url, status,
  scenario, decides_at, expires_at, decided_at, asserted, statement_line`;

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
}

const at = (sql: Queryable, ms: number) => sql`to_timestamp(${ms}::float8 / 1000)`;

/** Writes it; false when the account has one with that reference. */
export async function insertPayment(sql: Queryable, payment: NewPayment): Promise<boolean> {
  const inserted = await sql`
    insert into sandbox_provider_payments (payment_id, account_id, reference, amount_minor, currency, description,
      callback_url, scenario, decides_at, expires_at)
    values (${payment.paymentId}, ${payment.accountId}, ${payment.reference}, ${payment.amountMinor}::bigint,
      ${payment.currency}, ${payment.description}, ${payment.callbackUrl}, ${payment.scenario},
      ${at(sql, payment.decidesAtMs)}, ${at(sql, payment.expiresAtMs)})
    on conflict (account_id, reference) do nothing`;
  return inserted.count === 1;
}

export interface PaymentKey {
  readonly accountId: string;
  readonly reference: string;
}

export async function findByReference(sql: Queryable, key: PaymentKey): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${columns(sql)} from sandbox_provider_payments
    where account_id = ${key.accountId} and reference = ${key.reference}`;
  return row;
}

export async function findPayment(sql: Queryable, paymentId: string): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${columns(sql)} from sandbox_provider_payments where payment_id = ${paymentId}`;
  return row;
}

/** The payment, held until the transaction ends. */
export async function lockPayment(sql: Transaction, paymentId: string): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${columns(sql)} from sandbox_provider_payments where payment_id = ${paymentId} for update`;
  return row;
}

/** Up to `limit` payments that decide now, held until the transaction ends; others skip them. */
export async function takeDeciding(sql: Transaction, limit: number): Promise<PaymentRow[]> {
  return sql<PaymentRow[]>`
    select ${columns(sql)} from sandbox_provider_payments where decides_at <= now()
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

/** The account's paid lines after one of them, in their order. */
export async function selectStatement(
  sql: Queryable,
  page: { readonly accountId: string; readonly after: number; readonly limit: number },
): Promise<PaymentRow[]> {
  return sql<PaymentRow[]>`
    select ${columns(sql)} from sandbox_provider_payments
    where account_id = ${page.accountId} and statement_line > ${page.after}
    order by statement_line limit ${page.limit}`;
}

/** Removes up to `rows` payments that are so old, with their callbacks; returns how many. */
export async function deleteOldPayments(
  sql: Transaction,
  { olderThanDays, rows }: { readonly olderThanDays: number; readonly rows: number },
): Promise<number> {
  const old = await sql<{ payment_id: string }[]>`
    select payment_id from sandbox_provider_payments
    where created_at < now() - make_interval(days => ${olderThanDays}) limit ${rows} for update skip locked`;
  const ids = old.map((row) => row.payment_id);
  await sql`delete from sandbox_provider_callbacks where payment_id = any(${ids}::text[])`;
  await sql`delete from sandbox_provider_payments where payment_id = any(${ids}::text[])`;
  return ids.length;
}
