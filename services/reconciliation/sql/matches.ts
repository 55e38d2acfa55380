/** Matches and candidates, as they are stored: one SQL operation per function. */
import type { MATCH_TIERS } from "../../bus/messages/reconciliation-matches.ts";
import type { Fragment, Queryable, Transaction } from "../../db/pool.ts";
import { RUN_LIMITS } from "../limits.ts";

/** A line as JSON, as the bus has it. */
export interface LineJson {
  readonly lineId: number;
  readonly kind: string;
  readonly bookedOn: string;
  readonly amountMinor: string;
  readonly currency: string;
  readonly providerReference: string;
}

export interface PaymentJson {
  readonly paymentKey: string;
  readonly source: string;
  readonly transactionId: number | null;
  readonly orderId: number | null;
  readonly orderDisplayNumber: number | null;
  readonly stationId: number | null;
  readonly route: string | null;
  readonly amountMinor: string | null;
  readonly currency: string | null;
  readonly reference: string | null;
  readonly settledAtMs: number | null;
}

type Explanation = Readonly<Record<string, string | number>>;

export interface MatchRow {
  readonly match_id: number;
  readonly account_id: number;
  readonly run_id: number;
  readonly tier: (typeof MATCH_TIERS)[number];
  readonly score: number;
  readonly explanation: Explanation;
  readonly lines: readonly LineJson[];
  readonly payments: readonly PaymentJson[];
  readonly created_at: Date;
}

export interface CandidatesRow {
  readonly line: LineJson;
  readonly kind: string;
  readonly issue_id: number | null;
  readonly candidates: readonly {
    readonly payment: PaymentJson;
    readonly score: number;
    readonly explanation: Explanation;
  }[];
}

/** `l` is a row of `statement_lines`. */
const lineJson = (sql: Queryable): Fragment => sql`
  jsonb_build_object('lineId', l.line_id, 'kind', l.kind, 'bookedOn', l.booked_on, 'amountMinor', l.amount_minor::text,
    'currency', l.currency, 'providerReference', l.provider_reference)`;

/** Of a payment key; a transaction of another organization is not shown. */
const paymentJson = (sql: Queryable, key: Fragment, organizationId: number): Fragment => sql`(
  select jsonb_build_object('paymentKey', k.key, 'source',
    case split_part(k.key, ':', 1) when 'late' then 'late_evidence' else split_part(k.key, ':', 1) end,
    'transactionId', t.transaction_id, 'orderId', t.order_id,
    'orderDisplayNumber', (select display_number from orders where order_id = t.order_id), 'stationId', t.station_id, 'route', t.route,
    'amountMinor', t.amount_minor::text, 'currency', t.currency, 'reference', t.reference,
    'settledAtMs', floor(extract(epoch from t.settled_at) * 1000))
  from (select ${key} as key) k left join transactions t on k.key ~ '^transaction:[0-9]{1,18}$'
    and t.transaction_id = case when k.key ~ '^transaction:[0-9]{1,18}$' then split_part(k.key, ':', 2)::bigint end
    and t.organization_id = ${organizationId})`;

/** Newest first. */
export async function listMatches(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly accountId: number | undefined;
    readonly lineId: number | undefined;
    readonly transactionId: number | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<readonly MatchRow[]> {
  const { organizationId, accountId = null, lineId = null, beforeId = null } = page;
  const key = page.transactionId === undefined ? null : `transaction:${page.transactionId}`;
  return await sql<MatchRow[]>`
    select m.match_id, m.account_id, m.run_id, m.tier, m.score, m.explanation, m.created_at, (
        select coalesce(jsonb_agg(${lineJson(sql)} order by l.line_id), '[]') from match_lines ml join statement_lines l using (line_id)
        where ml.match_id = m.match_id) as lines, (
        select coalesce(jsonb_agg(${paymentJson(sql, sql`mp.payment_key`, organizationId)} order by mp.payment_key), '[]')
        from match_payments mp where mp.match_id = m.match_id) as payments
    from (
      select m.* from statement_matches m join statement_accounts a using (account_id)
      where a.organization_id = ${organizationId}
        and (${accountId}::bigint is null or m.account_id = ${accountId}::bigint)
        and (${lineId}::bigint is null or m.match_id = (select match_id from match_lines where line_id = ${lineId}::bigint))
        and (${key}::text is null or m.match_id = (select match_id from match_payments where payment_key = ${key}::text))
        and (${beforeId}::bigint is null or m.match_id < ${beforeId}::bigint)
      order by m.match_id desc limit ${page.limit}
    ) m order by m.match_id desc`;
}

/** By line. */
export async function listCandidates(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly accountId: number | undefined;
    readonly lineId: number | undefined;
    readonly sinceId: number;
    readonly limit: number;
  },
): Promise<readonly CandidatesRow[]> {
  const { organizationId, accountId = null, lineId = null } = page;
  return await sql<CandidatesRow[]>`
    select ${lineJson(sql)} as line, o.reason as kind, o.issue_id, (
        select jsonb_agg(jsonb_build_object('payment', ${paymentJson(sql, sql`c.payment_key`, organizationId)},
          'score', c.score, 'explanation', c.explanation) order by c.score desc, c.payment_key)
        from line_candidates c where c.line_id = l.line_id) as candidates
    from (
      select distinct line_id from line_candidates c join statement_accounts a using (account_id)
      where a.organization_id = ${organizationId} and c.line_id > ${page.sinceId}
        and (${accountId}::bigint is null or c.account_id = ${accountId}::bigint)
        and (${lineId}::bigint is null or c.line_id = ${lineId}::bigint)
      order by line_id limit ${page.limit}
    ) listed join statement_lines l using (line_id) join line_outcomes o using (line_id)
    order by l.line_id`;
}

export interface DecidedLine {
  readonly line_id: number;
  readonly account_id: number;
  readonly fingerprint: Buffer;
  readonly amount_minor: string;
  /** Without the fees that the statement names. */
  readonly net_minor: string;
  readonly currency: string;
  readonly booked_on: string;
}

/** Keeps the lines from being withdrawn until the transaction ends. */
export async function lockLines(
  sql: Transaction,
  { organizationId, lineIds }: { readonly organizationId: number; readonly lineIds: readonly number[] },
): Promise<readonly DecidedLine[]> {
  return await sql<DecidedLine[]>`
    select line_id, account_id, fingerprint, amount_minor::text as amount_minor, coalesce(net_minor, amount_minor)::text as net_minor,
      currency, booked_on::text as booked_on
    from statement_lines where organization_id = ${organizationId} and line_id = any (${[...lineIds]}::bigint[])
    order by line_id for key share`;
}

export interface DecidedPayment {
  readonly payment_key: string;
  readonly source: "transaction" | "payout";
  readonly amount_minor: string;
  readonly currency: string;
}

/** Payments among those that a person may choose: settled orders and payouts, as runs over the lines' days find them. */
export async function findPayments(
  sql: Transaction,
  asked: { readonly accountId: number; readonly lineIds: readonly number[]; readonly paymentKeys: readonly string[] },
): Promise<readonly DecidedPayment[]> {
  return await sql<DecidedPayment[]>`
    select e.payment_key, e.source, e.amount_minor::text as amount_minor, e.currency
    from (select min(booked_on) as first_day, max(booked_on) as last_day from statement_lines
        where line_id = any (${[...asked.lineIds]}::bigint[])) d
      cross join lateral expected_payments(${asked.accountId}, d.first_day - ${RUN_LIMITS.lookBackDays}::int,
        d.last_day + ${RUN_LIMITS.earlyDays}::int) e
    where e.payment_key = any (${[...asked.paymentKeys]}::text[]) and e.source in ('transaction', 'payout')`;
}

export interface Members {
  readonly organizationId: number;
  readonly accountId: number;
  readonly lineIds: readonly number[];
  readonly paymentKeys: readonly string[];
}

/** Whether another match or confirmation has one of these lines or payments. Decisions about these together do not count. */
export async function findTaken(
  sql: Transaction,
  { organizationId, accountId, lineIds, paymentKeys }: Members,
): Promise<{ readonly has_line: boolean; readonly has_payment: boolean }> {
  const [row] = await sql<{ has_line: boolean; has_payment: boolean }[]>`
    with line as (select line_id, fingerprint from statement_lines where line_id = any (${[...lineIds]}::bigint[])),
    pair as (
      select ml.line_id, mp.payment_key from match_lines ml join match_payments mp using (match_id)
        where (ml.line_id in (select line_id from line) or mp.payment_key = any (${[...paymentKeys]}::text[]))
          and not exists (select from match_decisions d join statement_lines l on l.line_id = ml.line_id
            where d.account_id = l.account_id and d.fingerprint = l.fingerprint and d.payment_key = mp.payment_key
              and d.decision = 'rejected')
      union
      select l.line_id, d.payment_key from match_decisions d join statement_accounts a using (account_id)
        join statement_lines l on l.account_id = d.account_id and l.fingerprint = d.fingerprint
        where a.organization_id = ${organizationId} and d.decision = 'confirmed'
          and ((d.account_id = ${accountId} and d.fingerprint in (select fingerprint from line))
            or d.payment_key = any (${[...paymentKeys]}::text[]))
    )
    select coalesce(bool_or(line_id in (select line_id from line) and not payment_key = any (${[...paymentKeys]}::text[])), false) as has_line,
      coalesce(bool_or(payment_key = any (${[...paymentKeys]}::text[]) and line_id not in (select line_id from line)), false) as has_payment
    from pair`;
  return row ?? { has_line: false, has_payment: false };
}

export interface DecisionRow {
  readonly line_id: number;
  readonly payment: PaymentJson;
  readonly decision: "confirmed" | "rejected";
  readonly decided_by: number;
  readonly decided_at: Date;
  readonly reason: string;
}

/** Stores a decision for each line with each payment. The same decision by the same person for the same reason is kept. */
export async function decideMatch(
  sql: Transaction,
  members: Members & {
    readonly decision: "confirmed" | "rejected";
    readonly decidedBy: number;
    readonly reason: string;
  },
): Promise<readonly DecisionRow[]> {
  const { organizationId, accountId, lineIds, paymentKeys, decision, decidedBy, reason } = members;
  await sql`
    insert into match_decisions as known (account_id, fingerprint, payment_key, decision, decided_by, reason)
    select ${accountId}, l.fingerprint, k.payment_key, ${decision}, ${decidedBy}, ${reason}
    from statement_lines l cross join unnest(${[...paymentKeys]}::text[]) as k (payment_key)
    where l.line_id = any (${[...lineIds]}::bigint[])
    on conflict (account_id, fingerprint, payment_key) do update
      set decision = excluded.decision, decided_by = excluded.decided_by, decided_at = now(), reason = excluded.reason
      where (known.decision, known.decided_by, known.reason)
        is distinct from (excluded.decision, excluded.decided_by, excluded.reason)`;
  return await sql<DecisionRow[]>`
    select l.line_id, ${paymentJson(sql, sql`d.payment_key`, organizationId)} as payment, d.decision, d.decided_by, d.decided_at, d.reason
    from match_decisions d join statement_lines l using (account_id, fingerprint)
    where l.line_id = any (${[...lineIds]}::bigint[]) and d.payment_key = any (${[...paymentKeys]}::text[])
    order by l.line_id, d.payment_key`;
}

/** Whether the payment is, or was, one that the line could have: a candidate, a match or a decision. */
export async function isRelated(
  sql: Transaction,
  { lineId, paymentKey }: { readonly lineId: number; readonly paymentKey: string },
): Promise<boolean> {
  const [row] = await sql<{ related: boolean }[]>`
    select exists (select from line_candidates where line_id = ${lineId} and payment_key = ${paymentKey})
      or exists (select from match_lines ml join match_payments mp using (match_id)
        where ml.line_id = ${lineId} and mp.payment_key = ${paymentKey})
      or exists (select from line_outcomes where line_id = ${lineId} and payment_key = ${paymentKey})
      or exists (select from match_decisions d join statement_lines l using (account_id, fingerprint)
        where l.line_id = ${lineId} and d.payment_key = ${paymentKey}) as related`;
  return row?.related === true;
}
