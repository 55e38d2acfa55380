/** Writes the results of a run: matches, outcomes of lines, candidates, sums and hashes. Writes only what has changed. */
import type { Transaction } from "../../db/pool.ts";
import { RUN_LIMITS } from "../limits.ts";
import { removeMatches } from "./match-removal.ts";
import type { RunScope } from "./runs.ts";

/** Removes matches whose lines were all removed with a withdrawn import, so that a run can match their payments again. */
export async function removeBrokenMatches(sql: Transaction, { organizationId }: RunScope): Promise<void> {
  await removeMatches(
    sql,
    sql`
      select m.match_id from statement_matches m join statement_accounts a using (account_id)
      where a.organization_id = ${organizationId} and not exists (select from match_lines l where l.match_id = m.match_id)`,
  );
}

/**
 * Fills `run_kept` with the former matches that still hold: such a match has all lines and all payments of one group, and no
 * others. Each step fills an analyzed table. In a single statement, PostgreSQL would take the two keys of a group as
 * independent, expect one row, and read a million matches one by one.
 */
async function findKept(sql: Transaction): Promise<void> {
  await sql.unsafe(`
    create temporary table run_former on commit drop as
      select match_id, count(*) as lines from match_lines
      where match_id in (select match_id from match_lines join run_lines using (line_id)) group by match_id;
    analyze run_former;
    create temporary table run_former_payments on commit drop as
      select match_id, count(*) as payments from match_payments where match_id in (select match_id from run_former) group by match_id;
    -- For each group: the one former match of all its lines, and the one former match of all its payments.
    create temporary table run_of_lines on commit drop as
      select group_key, min(match_id) as match_id, count(*) as lines from run_group_lines left join match_lines using (line_id)
      group by group_key having count(match_id) = count(*) and min(match_id) = max(match_id);
    create temporary table run_of_payments on commit drop as
      select group_key, min(match_id) as match_id, count(*) as payments
      from run_group_payments left join match_payments using (payment_key)
      group by group_key having count(match_id) = count(*) and min(match_id) = max(match_id);
    analyze run_former_payments, run_of_lines, run_of_payments;
    create temporary table run_of_both on commit drop as
      select group_key, l.match_id, lines, payments from run_of_lines l join run_of_payments p using (group_key)
      where l.match_id = p.match_id;
    analyze run_of_both;
    create temporary table run_kept on commit drop as
      select b.group_key, b.match_id
      from run_of_both b join run_former using (match_id, lines) join run_former_payments using (match_id, payments)
        join run_groups g on g.group_key = b.group_key
        join statement_matches m on m.match_id = b.match_id and m.tier = g.tier;
    analyze run_kept;`);
}

/** Inserts the new matches and removes the matches that no longer hold. The other matches keep their ids. */
export async function writeMatches(sql: Transaction, { runId, accountId }: RunScope): Promise<void> {
  await findKept(sql);
  await removeMatches(
    sql,
    sql`select match_id from run_former f where not exists (select from run_kept k where k.match_id = f.match_id)`,
  );
  await sql`
    create temporary table run_new on commit drop as
      select nextval('statement_matches_match_id_seq'::regclass) as match_id, g.* from run_groups g
      where not exists (select from run_kept k where k.group_key = g.group_key)`;
  await sql`
    insert into statement_matches (match_id, account_id, run_id, tier, score, explanation) overriding system value
    select match_id, ${accountId}, ${runId}, tier, 100, jsonb_build_object('reference',
      case pass when 0 then 'confirmed' when 1 then 'provider' when 2 then 'merchant' else 'typed' end, 'daysApart', days)
    from run_new`;
  await sql`insert into match_lines select line_id, match_id from run_new join run_group_lines using (group_key)`;
  await sql`insert into match_payments select payment_key, match_id from run_new join run_group_payments using (group_key)`;
}

/** Writes for each unmatched line of the run its issue, or why it is rejected. */
export async function writeOutcomes(sql: Transaction, { runId, accountId }: RunScope): Promise<void> {
  await sql`
    create temporary table run_outcomes on commit drop as
    select c.line_id, 'differs' as outcome, c.kind as reason, d.issue_id, c.payment_key, c.score
      from run_candidates c join run_differences d on d.run_id = ${runId} and d.kind = c.kind
        and d.subject_key = c.subject_key and d.station_id = coalesce(c.station_id, 0)
      where c.line_id is not null
    union all
    select d.line_id, 'differs', i.kind, i.issue_id, d.payment_key, d.score
      from run_diffs d join run_payments p using (payment_key) join issues i on i.issue_id = p.issue_id
      where d.kind = 'callback_issue'
    union all
    select line_id, 'rejected', reason, null, null, null from run_rejects`;
  await sql`analyze run_outcomes`;
  await sql`
    delete from line_outcomes o using run_lines l
    where o.line_id = l.line_id and not exists (select from run_outcomes r where r.line_id = o.line_id)`;
  await sql`
    insert into line_outcomes as known (line_id, account_id, outcome, reason, issue_id, payment_key, score)
    select line_id, ${accountId}, outcome, reason, issue_id, payment_key, score from run_outcomes
    on conflict (line_id) do update set outcome = excluded.outcome, reason = excluded.reason, issue_id = excluded.issue_id,
      payment_key = excluded.payment_key, score = excluded.score
    where (known.outcome, known.reason, known.issue_id, known.payment_key, known.score)
      is distinct from (excluded.outcome, excluded.reason, excluded.issue_id, excluded.payment_key, excluded.score)`;
}

/** Writes the best candidates of each line that has no certain payment. */
export async function writeCandidates(sql: Transaction, { accountId }: RunScope): Promise<void> {
  await sql`
    create temporary table run_listed on commit drop as
    select line_id, payment_key, score, explanation from (
      select s.*, row_number() over (partition by s.line_id order by s.score desc, s.payment_key) as place
      from run_scores s join run_diffs d using (line_id) where d.kind in ('reference_mismatch', 'ambiguous_match')
    ) ranked where place <= ${RUN_LIMITS.listedCandidates}`;
  await sql`analyze run_listed`;
  await sql`
    delete from line_candidates c using run_lines l
    where c.line_id = l.line_id
      and not exists (select from run_listed r where r.line_id = c.line_id and r.payment_key = c.payment_key)`;
  await sql`
    insert into line_candidates as known (line_id, payment_key, account_id, score, explanation)
    select line_id, payment_key, ${accountId}, score, explanation from run_listed
    on conflict (line_id, payment_key) do update set score = excluded.score, explanation = excluded.explanation
    where (known.score, known.explanation) is distinct from (excluded.score, excluded.explanation)`;
}

/** Writes the counts, the sums by currency and the hashes of a run. Ids, the order of rows and closings change no hash. */
export async function summarize(sql: Transaction, { runId }: RunScope): Promise<void> {
  await sql`
    create temporary table run_hashed on commit drop as
    select l.fingerprint, l.currency, l.amount_minor,
      coalesce(o.outcome, case when g.line_id is not null then 'matched' end) as outcome,
      sha256(l.fingerprint || convert_to(concat_ws('|', l.kind, l.amount_minor, l.currency), 'UTF8')) as input,
      sha256(l.fingerprint || convert_to(concat_ws('|', coalesce(o.outcome, 'matched'), o.reason, o.payment_key, o.score, g.payments),
        'UTF8')) as result
    from run_lines l left join run_outcomes o using (line_id)
      left join (
        select gl.line_id, string_agg(gp.payment_key, ',' order by gp.payment_key) as payments
        from run_group_lines gl join run_group_payments gp using (group_key) group by gl.line_id) g using (line_id)`;
  await sql`
    with bucket as (
      select get_byte(fingerprint, 0) as bucket, sha256(string_agg(input, ''::bytea order by input)) as input,
        sha256(string_agg(result, ''::bytea order by result)) as result
      from run_hashed group by 1
    ),
    lines as (
      select sha256(coalesce(string_agg(input, ''::bytea order by bucket), '')) as input,
        sha256(coalesce(string_agg(result, ''::bytea order by bucket), '')) as result from bucket
    ),
    payments as (
      select sha256(coalesce(string_agg(one, ''::bytea order by bucket), '')) as input from (
        select bucket, sha256(string_agg(one, ''::bytea order by one)) as one from (
          select get_byte(one, 0) as bucket, one from (
            select sha256(convert_to(concat_ws('|', payment_key, amount_minor, currency, settled_on, is_taken, own), 'UTF8')) as one
            from run_payments) hashed) bucketed
        group by bucket) each
    ),
    named as (
      select sha256(coalesce(string_agg(convert_to(concat_ws('|', kind, subject_key, station_id, encode(evidence_hash, 'hex')), 'UTF8'),
        ''::bytea order by kind, subject_key, station_id) filter (where kind <> 'after_closing'), '')) as result, count(*) as differences
      from run_differences where run_id = ${runId}
    )
    update reconciliation_runs r set
      lines = s.lines, matched = s.matched, differing = s.differing, rejected = s.rejected, differences = named.differences,
      payments = (select count(*) from run_payments), totals = s.totals,
      input_hash = sha256(lines.input || payments.input), result_hash = sha256(lines.result || named.result)
    from lines, payments, named, (
      select coalesce(sum(lines), 0) as lines, coalesce(sum(matched), 0) as matched, coalesce(sum(differing), 0) as differing,
        coalesce(sum(rejected), 0) as rejected,
        coalesce(jsonb_agg(jsonb_build_object('currency', currency, 'lines', lines, 'totalMinor', total::text,
          'matchedMinor', matched_minor::text, 'differingMinor', differing_minor::text, 'rejectedMinor', rejected_minor::text)
          order by currency), '[]') as totals
      from (
        select currency, count(*) as lines, sum(amount_minor) as total,
          count(*) filter (where outcome = 'matched') as matched, count(*) filter (where outcome = 'differs') as differing,
          count(*) filter (where outcome = 'rejected') as rejected,
          coalesce(sum(amount_minor) filter (where outcome = 'matched'), 0) as matched_minor,
          coalesce(sum(amount_minor) filter (where outcome = 'differs'), 0) as differing_minor,
          coalesce(sum(amount_minor) filter (where outcome = 'rejected'), 0) as rejected_minor
        from run_hashed group by currency) by_currency) s
    where r.run_id = ${runId}`;
  const [open] = await sql<{ lines: number }[]>`
    select count(*) as lines from run_hashed where outcome is null`;
  if (open !== undefined && open.lines > 0) throw new Error(`The run has left ${open.lines} lines without an outcome.`);
}
