/**
 * What a run compares, in temporary tables of its transaction: the lines of the account, the payments that they may show, and
 * every pair of them with a common reference.
 */
import type { Fragment, Transaction } from "../../db/pool.ts";
import { RUN_LIMITS } from "../limits.ts";
import type { RunScope } from "./runs.ts";

/** The columns of the temporary tables of a run. */
const TABLES = `
  create temporary table run_lines (
    line_id bigint, fingerprint bytea, ordinal integer, kind text, amount_minor bigint, currency text, fee_minor bigint, net_minor bigint,
    tip_minor bigint, booked_on date, occurred_at timestamptz, provider_key text, payment_ref_key text, merchant_key text,
    typed_keys text[], payout_key text, terminal text) on commit drop;
  create temporary table run_payments (
    payment_key text, source text, own boolean, in_filial boolean, issue_id bigint, station_id bigint, intent_id bigint,
    order_id bigint, route text, amount_minor bigint, currency text, provider_key text, our_key text, typed_key text,
    settled_on date, settled_at timestamptz, is_taken boolean) on commit drop;
  create temporary table run_links (
    line_id bigint, payment_key text, pass integer, preference integer, days integer, difference bigint, same_currency boolean,
    is_taken boolean, booked_on date, fingerprint bytea) on commit drop;
  create temporary table run_pairs (line_id bigint, payment_key text, pass integer, days integer) on commit drop;
  create temporary table run_groups (group_key text, tier text, pass integer, days integer) on commit drop;
  create temporary table run_group_lines (group_key text, line_id bigint) on commit drop;
  create temporary table run_group_payments (group_key text, payment_key text) on commit drop;
  create temporary table run_terminals (terminal text, station_id bigint) on commit drop;
  create temporary table run_rejects (line_id bigint, reason text) on commit drop;
  -- station_id: of a closed issue, whose payment may not be expected any more.
  create temporary table run_diffs (
    line_id bigint, payment_key text, kind text, score integer, facts jsonb, station_id bigint) on commit drop;
  create temporary table run_named_payments (payment_key text) on commit drop;
  create temporary table run_scores (line_id bigint, payment_key text, score integer, explanation jsonb) on commit drop;`;

export async function createRunTables(sql: Transaction): Promise<void> {
  await sql.unsafe(`set local work_mem = '${RUN_LIMITS.workMemoryMiB}MB'; set local statement_timeout = 0; ${TABLES}`);
}

/** Skips empty texts: most columns are empty in most statements, and the functions are slowest for an empty text. */
export const comparable = (sql: Transaction, column: Fragment): Fragment =>
  sql`case when ${column} <> '' then comparable_reference(${column}) end`;
const typed = (sql: Transaction, column: Fragment): Fragment =>
  sql`case when ${column} <> '' then typed_reference(${column}) end`;
/** Each provider has the number of a slip in another column. */
export const typedKeys = (sql: Transaction): Fragment => sql`
  array_remove(array[${typed(sql, sql`provider_reference`)}, ${typed(sql, sql`payment_reference`)},
    ${typed(sql, sql`merchant_reference`)}], null)`;

/**
 * This run ignores the matches of the lines that it judges again. A payment that is matched with a line of another account, or of
 * other days, is taken: a line of this run with its reference is a duplicate.
 */
export async function loadRunInputs(sql: Transaction, { accountId, fromDate, toDate }: RunScope): Promise<void> {
  await sql`
    insert into run_lines
    select line_id, fingerprint, ordinal, kind, amount_minor, currency, fee_minor, net_minor, tip_minor, booked_on, occurred_at,
      ${comparable(sql, sql`provider_reference`)}, ${comparable(sql, sql`payment_reference`)},
      ${comparable(sql, sql`merchant_reference`)}, ${typedKeys(sql)}, nullif(payout_reference, ''), terminal
    from statement_lines where account_id = ${accountId} and (booked_on between ${fromDate}::date and ${toDate}::date
      -- A match that reaches beyond the days of the run is judged as a whole.
      or line_id in (
        select o.line_id from match_lines m join match_lines o using (match_id) join statement_lines l on l.line_id = m.line_id
        where o.line_id <> m.line_id and l.account_id = ${accountId} and l.booked_on between ${fromDate}::date and ${toDate}::date)
      -- So are the payouts with one reference: their matches have one name, or names that depend on one another.
      or line_id in (
        select line_id from statement_lines
        where account_id = ${accountId} and kind = 'payout' and payout_reference <> '' and payout_reference in (
          select payout_reference from statement_lines
          where account_id = ${accountId} and booked_on between ${fromDate}::date and ${toDate}::date and kind = 'payout')))`;
  await sql`analyze run_lines`;
  await sql`
    insert into run_payments
    select e.*, exists (
      select from match_payments m where m.payment_key = e.payment_key and not exists (
        select from match_lines ml join run_lines l using (line_id) where ml.match_id = m.match_id))
    from expected_payments(${accountId}, ${fromDate}::date - ${RUN_LIMITS.lookBackDays}::int,
      ${toDate}::date + ${RUN_LIMITS.earlyDays}::int) e`;
  await sql`analyze run_payments`;
  await leaveHeldElsewhere(sql, accountId);
}

/**
 * A payment is not missing here if a line of other days or of a rival account differs from it, or has it as its best candidate.
 * Nor is a payout missing that a credit of other days names, or whose group a person has closed.
 */
async function leaveHeldElsewhere(sql: Transaction, accountId: number): Promise<void> {
  await sql`
    update run_payments set own = false where own and payment_key in (
      select o.payment_key from line_outcomes o
        where o.payment_key is not null and not exists (select from run_lines l where l.line_id = o.line_id)
      union all
      select c.payment_key from line_candidates c
        where c.account_id in (select ${accountId}::bigint union select account_id from rival_accounts(${accountId})
            union select account_id from rival_banks(${accountId}))
          and not exists (select from run_lines l where l.line_id = c.line_id)
          and not exists (select from line_candidates b where b.line_id = c.line_id and b.score > c.score)
      union all
      select jsonb_array_elements_text((i.evidence #>> '{statement,facts,named}')::jsonb)
        from statement_accounts a join issues i on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
          join statement_lines s on s.account_id = a.account_id
            and s.fingerprint = case when i.subject_key like 'line:%' then decode(substr(i.subject_key, 6), 'hex') end
        where a.account_id in (select ${accountId}::bigint union select account_id from rival_banks(${accountId}))
          and i.kind in ('amount_over', 'amount_under', 'reference_mismatch') and i.status <> 'ended' and i.superseded_by is null
          and not exists (select from run_lines l where l.line_id = s.line_id))`;
}

/** The amount of a line that is compared with a payment: a payout arrives without the fees that the bank's text names. */
export const arrivedMinor = (sql: Transaction): Fragment =>
  sql`case p.source when 'payout' then coalesce(l.net_minor, l.amount_minor) else l.amount_minor end`;

/** A row of `run_links`, of `l` and `p`. */
const link = (sql: Transaction, pass: Fragment): Fragment => sql`
  l.line_id, p.payment_key, ${pass} as pass,
  (case p.source when 'issue' then 2 when 'late_evidence' then 1 else 0 end) + case when p.in_filial then 0 else 4 end as preference,
  l.booked_on - p.settled_on as days,
  ${arrivedMinor(sql)} - p.amount_minor as difference,
  l.currency = p.currency as same_currency, p.is_taken, l.booked_on, l.fingerprint`;

/** Whether a line of this kind may belong to a payment of this route. */
const isComparable = (sql: Transaction): Fragment => sql`
  case l.kind when 'payment' then p.route not in ('cash', 'payout') when 'cash_payment' then p.route = 'cash'
    when 'bank_credit' then p.route in ('dynamic_qr', 'payout') else false end`;

/**
 * Every line and payment with a common reference. The passes: 1 the provider's reference, 2 our reference, 3 a reference that
 * was typed from a slip. A short slip number counts only within its filial and some days, because it repeats.
 */
export async function linkByReference(sql: Transaction, { accountId }: RunScope): Promise<void> {
  const { candidateDays, shortReferenceCharacters, shortestWord } = RUN_LIMITS;
  await sql`
    insert into run_links
    select line_id, payment_key, min(pass), preference, days, difference, same_currency, is_taken, booked_on, fingerprint from (
      select ${link(sql, sql`1`)} from run_lines l join run_payments p on p.provider_key = l.provider_key
        where ${isComparable(sql)}
      union all
      select ${link(sql, sql`1`)} from run_lines l join run_payments p on p.provider_key = l.payment_ref_key
        where l.kind = 'payment' and ${isComparable(sql)}
      union all
      select ${link(sql, sql`2`)} from run_lines l join run_payments p on p.our_key = l.merchant_key
        -- Pairs of the first pass are in the result already.
        where (p.provider_key = l.provider_key) is not true and ${isComparable(sql)}
      union all
      select ${link(sql, sql`3`)}
        from (select r.*, unnest(typed_keys) as typed_key from run_lines r) l join run_payments p on p.typed_key = l.typed_key
        where ${isComparable(sql)} and (length(p.typed_key) > ${shortReferenceCharacters}
          or (p.in_filial and l.booked_on - p.settled_on between ${-candidateDays}::int and ${candidateDays}::int))
      union all
      -- A bank's credit names its payment or its payout within its text, perhaps in capitals, or divided by a line break. A short
      -- number counts only with the same amount.
      select ${link(sql, sql`2`)}
        from (select r.*, upper(word) as word from run_lines r join statement_lines s using (line_id),
            regexp_split_to_table(s.text || case when strpos(s.text, chr(10)) > 0 then ' ' || replace(s.text, chr(10), '') else '' end,
              '[^0-9A-Za-z_-]+') as word
          where r.kind = 'bank_credit' and length(word) >= ${shortestWord}) l
        join (select o.*, upper(our_key) as word from run_payments o where source in ('payout', 'transaction')
          union all select o.*, upper(provider_key) from run_payments o where source in ('payout', 'transaction')) p
          on p.word = l.word and (length(p.word) > ${shortReferenceCharacters}
            or p.amount_minor = coalesce(l.net_minor, l.amount_minor))
        where ${isComparable(sql)}
      union all
      -- A mapping finds the payout's reference within another word of the text.
      select ${link(sql, sql`2`)}
        from (select r.*, comparable_reference(payout_key) as named from run_lines r where kind = 'bank_credit' and payout_key is not null) l
        join (select o.*, our_key as named from run_payments o where source = 'payout'
          union all select o.*, provider_key from run_payments o where source = 'payout') p
          on p.named = l.named and (length(p.named) > ${shortReferenceCharacters}
            or p.amount_minor = coalesce(l.net_minor, l.amount_minor))
    ) linked
    where not exists (select from match_decisions d where d.account_id = ${accountId} and d.fingerprint = linked.fingerprint
      and d.payment_key = linked.payment_key and d.decision = 'rejected')
    group by line_id, payment_key, preference, days, difference, same_currency, is_taken, booked_on, fingerprint`;
  await sql`analyze run_links`;
}
