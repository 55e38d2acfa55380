/** Payments that the service has requested from providers. */
import type { ProviderEndReason } from "../../../machines/payment-intent.ts";
import { moneyKey, moneyName } from "../../bus/messages/intents.ts";
import type { Database, Json, Queryable, Transaction } from "../../db/pool.ts";
import type { ConfigRow } from "./configs.ts";

export interface PaymentRow {
  readonly intent_id: number;
  readonly config_id: number;
  readonly organization_id: number;
  readonly station_id: number;
  readonly order_display_number: number;
  readonly reference: string;
  readonly account: string;
  readonly amount_minor: string;
  readonly currency: string;
  readonly expires_at: Date;
  readonly status: "asked" | "ready" | "failed";
  readonly asked_until: Date;
  readonly failure: ProviderEndReason | null;
  readonly qr_payload: string;
  readonly provider_reference: string;
  readonly paid_reference: string | null;
  readonly withdrawn_at: Date | null;
  readonly ended_at: Date | null;
  /** How often the provider has asserted money that became evidence of an issue. */
  readonly assertions: number;
  readonly created_at: Date;
}

const columns = (sql: Queryable) => sql`
  intent_id, config_id, organization_id, station_id, order_display_number, reference, account,
  amount_minor::text as amount_minor, currency, expires_at, status, asked_until, failure, qr_payload, provider_reference,
  paid_reference, withdrawn_at, ended_at, assertions, created_at`;

interface NewPayment {
  readonly intentId: number;
  readonly configId: number;
  readonly organizationId: number;
  readonly stationId: number;
  readonly orderDisplayNumber: number;
  readonly reference: string;
  readonly account: string;
  /** The settings of the config name the account's scheme too. */
  readonly config: Pick<ConfigRow, "kind" | "settings">;
  readonly amountMinor: string;
  readonly currency: string;
  readonly expiresAtMs: number;
  /** How long the writer of the row may take to ask the provider. */
  readonly askMs: number;
}

/** Writes the row; undefined when the intent has one already. */
export async function createProviderPayment(database: Queryable, payment: NewPayment): Promise<PaymentRow | undefined> {
  const { intentId, configId, organizationId, stationId, orderDisplayNumber, reference } = payment;
  const [row] = await database<PaymentRow[]>`
    insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
      account, account_scheme, amount_minor, currency, expires_at, asked_until)
    values (${intentId}, ${configId}, ${organizationId}, ${stationId}, ${orderDisplayNumber}, ${reference},
      ${payment.account}, provider_scheme(${payment.config.kind}, ${database.json(payment.config.settings as Json)}),
      ${payment.amountMinor}::bigint, ${payment.currency}, to_timestamp(${payment.expiresAtMs}::float8 / 1000),
      now() + ${payment.askMs}::float8 * interval '1 ms')
    on conflict (intent_id) do nothing
    returning ${columns(database)}`;
  return row;
}

/**
 * Locks an intent, with or without a payment, until the transaction ends, so that its payment and its end are written
 * one by one.
 */
export async function lockIntent(sql: Transaction, intentId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`provider payment ${intentId}`}, 0))`;
}

/** Records the end of an intent without a payment. */
export async function recordWithdrawal(sql: Transaction, intentId: number): Promise<void> {
  await sql`insert into provider_withdrawals (intent_id) values (${intentId}) on conflict (intent_id) do nothing`;
}

/** Whether an intent has ended before a payment was requested for it. */
export async function isWithdrawn(sql: Transaction, intentId: number): Promise<boolean> {
  const rows = await sql`select 1 from provider_withdrawals where intent_id = ${intentId}`;
  return rows.length > 0;
}

/** Takes over a request that has run out of time; undefined when there is none. */
export async function takeOverRequest(
  database: Database,
  intentId: number,
  askMs: number,
): Promise<PaymentRow | undefined> {
  const [row] = await database<PaymentRow[]>`
    update provider_payments set asked_until = now() + ${askMs}::float8 * interval '1 ms'
    where intent_id = ${intentId} and status = 'asked' and asked_until < now()
    returning ${columns(database)}`;
  return row;
}

/** Lets the next request call the provider at once. */
export async function releaseRequest(database: Database, intentId: number): Promise<void> {
  await database`
    update provider_payments set asked_until = now() where intent_id = ${intentId} and status = 'asked'`;
}

export async function findPayment(sql: Queryable, intentId: number): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`select ${columns(sql)} from provider_payments where intent_id = ${intentId}`;
  return row;
}

/**
 * The reference of the money that was recorded before the payment's deadline, and whether the deadline has passed. The
 * lock waits for a recording that is under way. A recording that begins after `is_over` has a later time
 * (`takeAsPaid`).
 */
export async function findRecordedConfirmation(
  sql: Queryable,
  intentId: number,
): Promise<{ readonly is_over: boolean; readonly provider_reference: string | null } | undefined> {
  const [row] = await sql<{ is_over: boolean; provider_reference: string | null }[]>`
    select clock_timestamp() >= expires_at as is_over,
      case when paid_at < expires_at then paid_reference end as provider_reference
    from provider_payments where intent_id = ${intentId} for share`;
  return row;
}

/** The intent's payment, locked until the transaction ends. */
export async function lockPayment(sql: Transaction, intentId: number): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${columns(sql)} from provider_payments where intent_id = ${intentId} for update`;
  return row;
}

/** The config's payment with the service's reference, locked until the transaction ends. */
export async function lockPaymentByReference(
  sql: Transaction,
  key: { readonly configId: number; readonly reference: string },
): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${columns(sql)} from provider_payments
    where config_id = ${key.configId} and reference = ${key.reference} for update`;
  return row;
}

/** The config's newest payment with this provider reference. */
export async function findPaymentByProviderReference(
  sql: Queryable,
  key: { readonly configId: number; readonly providerReference: string },
): Promise<PaymentRow | undefined> {
  const [row] = await sql<PaymentRow[]>`
    select ${columns(sql)} from provider_payments
    where config_id = ${key.configId} and provider_reference = ${key.providerReference}
    order by intent_id desc limit 1`;
  return row;
}

/** Money by the reference of its provider. */
interface MoneyName {
  readonly configId: number;
  readonly providerReference: string;
}

/**
 * Locks money until the transaction ends, whichever payment it is asserted for. Two transactions about the same money
 * run one after the other, also when two configs of one account report it. Taken before any payment is locked.
 */
export async function lockMoney(
  sql: Transaction,
  money: { readonly organizationId: number; readonly providerReference: string },
): Promise<void> {
  const { organizationId, providerReference } = money;
  await sql`
    select pg_advisory_xact_lock(hashtextextended(${`provider money of ${organizationId} ${providerReference}`}, 0))`;
}

/** Locks money against the payment seam until the transaction ends: the seam changes nothing about it meanwhile. */
export async function lockSettledMoney(sql: Transaction, name: string): Promise<void> {
  await sql`select lock_settled_money(${name})`;
}

/**
 * The payments that have taken this money, by whichever config of its account, locked until the transaction ends.
 * `names` are all known match keys of the money.
 */
export async function lockPaidPayments(
  sql: Transaction,
  money: MoneyName & { readonly names: readonly string[] },
): Promise<readonly PaymentRow[]> {
  const { configId, providerReference, names } = money;
  return await sql<PaymentRow[]>`
    select ${columns(sql)} from provider_payments
    where paid_money_name = any(${[...names]}::text[])
      or (config_id = ${configId} and provider_reference = ${providerReference}
        and provider_reference <> '' and paid_reference = ${providerReference})
    order by intent_id for update`;
}

/**
 * Whether the payment seam would refuse this money for the payment with this reference. It refuses money that was taken
 * for another payment, has paid another order, or was closed, by whichever config of its account.
 */
export async function isTakenElsewhere(
  sql: Queryable,
  money: MoneyName & { readonly reference: string },
): Promise<boolean> {
  const { configId, providerReference, reference } = money;
  if (providerReference === "") return false;
  const key = moneyKey({ configId, name: moneyName(providerReference, "") });
  const [row] = await sql<[{ is_taken: boolean }]>`
    select is_money_taken_elsewhere(${configId}, ${reference}, ${key}) as is_taken`;
  return row.is_taken;
}

/** Whether this payment has settled its intent. The transaction decides, whatever the station still knows. */
export async function hasSettled(
  sql: Queryable,
  { intentId, providerReference }: { readonly intentId: number; readonly providerReference: string },
): Promise<boolean> {
  const rows = await sql`
    select 1 from transactions where intent_id = ${intentId} and reference = ${providerReference}`;
  return rows.length > 0;
}

/** The first answer counts; false when there is one already. */
export async function markReady(
  sql: Transaction,
  intentId: number,
  created: { readonly qrPayload: string; readonly providerReference: string },
): Promise<boolean> {
  const updated = await sql`
    update provider_payments set status = 'ready', qr_payload = ${created.qrPayload},
      provider_reference = case when provider_reference = '' then ${created.providerReference} else provider_reference end
    where intent_id = ${intentId} and status = 'asked'`;
  return updated.count === 1;
}

/** The first answer counts; false when there is one already. */
export async function markFailed(sql: Transaction, intentId: number, failure: ProviderEndReason): Promise<boolean> {
  const updated = await sql`
    update provider_payments set status = 'failed', failure = ${failure}
    where intent_id = ${intentId} and status = 'asked'`;
  return updated.count === 1;
}

/** Stores the provider's reference of an answer that came too late to count. */
export async function keepProviderReference(
  sql: Queryable,
  intentId: number,
  providerReference: string,
): Promise<void> {
  await sql`
    update provider_payments set provider_reference = ${providerReference}
    where intent_id = ${intentId} and provider_reference = ''`;
}

/** Stores that the intent has ended unpaid; false when it has no payment. */
export async function markWithdrawn(sql: Transaction, intentId: number): Promise<boolean> {
  const updated = await sql`
    update provider_payments set withdrawn_at = coalesce(withdrawn_at, now()) where intent_id = ${intentId}`;
  return updated.count === 1;
}

/**
 * Stores that the provider reports an end: no money moved and none will. `assertions` is the payment's count before the
 * call to the provider. False when the payment is paid, or when the count has changed: the provider has asserted money
 * since, so its answer is out of date. The statement compares the count in the row, which PostgreSQL reads again after
 * it has waited for the row's lock.
 */
export async function recordEnd(
  sql: Transaction,
  { intentId, assertions }: { readonly intentId: number; readonly assertions?: number },
): Promise<boolean> {
  const asOf = assertions === undefined ? sql`` : sql`and assertions = ${assertions}`;
  const kept = await sql`
    update provider_payments set ended_at = coalesce(ended_at, now())
    where intent_id = ${intentId} and paid_at is null ${asOf}`;
  return kept.count === 1;
}

/** Removes the end that the provider has reported, because the provider has asserted money since. */
export async function clearEnd(sql: Transaction, intentId: number): Promise<void> {
  await sql`update provider_payments set ended_at = null, assertions = assertions + 1 where intent_id = ${intentId}`;
}

export async function deleteOldWithdrawals(sql: Queryable, olderThanDays: number, rows: number): Promise<number> {
  const deleted = await sql`
    delete from provider_withdrawals where intent_id in (
      select intent_id from provider_withdrawals
      where asked_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}
