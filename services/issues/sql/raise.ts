/**
 * Raises issues, from one to many thousands in one statement. One identity (account, station, kind, subject) is one issue:
 *
 *   its newest issue is …        same evidence hash             another evidence hash
 *   not stored                   opened                         opened
 *   open or assigned             seen again                     changed: the evidence is replaced, the earlier is kept
 *   ended                        returned, undecided as before  returned with the new evidence
 *   closed or attributed         seen again: stays decided      superseded: a new issue names it
 *
 * When an earlier issue was closed or attributed with the same hash, it is seen again instead of the newest one, and replaces it
 * (`superseded_by`). While an issue is being attributed, other evidence is only seen: the amount at the payment seam does not
 * change. What a run finds again with the same hash may name other lines or another payment (`refreshed`).
 */
import type { Fragment, Transaction } from "../../db/pool.ts";
import { ISSUE_LIMITS } from "../limits.ts";

const RAISE_OUTCOMES = ["opened", "superseded", "returned", "changed", "seen"] as const;

export interface RaisedIssue {
  readonly issueId: number;
  readonly outcome: (typeof RAISE_OUTCOMES)[number];
  /** The issue that a new one supersedes. */
  readonly supersedesId: number | null;
}

/**
 * The key of an issue's account: that of its provider config, so that a callback and a statement raise the same issue. A
 * statement's account without a config has the key `statement:` and its id. An account's key never changes, or all its issues
 * would be raised again.
 */
export const providerAccountKey = (configId: number): string => `provider:${configId}`;

/**
 * The columns of a query of candidates, in this order. `evidence_status` and `evidence_type` are part of the evidence hash: a
 * payment whose money has moved is `paid` and `payment`, whichever source reports it. `is_money`: the issue is about funds that
 * may still pay an order. Only such an issue can be attributed, and closing it closes the funds. `said_account` is the account
 * that the provider names. `supersedes_id` is a decided issue of another kind about the same subject, which this issue replaces.
 */
export const CANDIDATE_COLUMNS = `
  organization_id bigint, account_key text, station_id bigint, kind text, subject_key text, evidence_status text,
  evidence_type text, amount_minor bigint, currency text, source text, config_id bigint, statement_account_id bigint,
  intent_id bigint, order_id bigint, provider_reference text, evidence jsonb, is_money boolean, said_account text,
  supersedes_id bigint`;

/**
 * `candidates` is a query, for example of a temporary table, with the columns and types of `CANDIDATE_COLUMNS`. Of several
 * rows with one identity, one counts. Returns one row for each issue; the caller announces the issues that are opened or
 * superseded (`announceIssues`). Two concurrent transactions raise an issue once.
 */
export async function raiseIssues(sql: Transaction, candidates: Fragment): Promise<readonly RaisedIssue[]> {
  const raised = new Map<number, RaisedIssue>();
  for (let pass = 0; pass < ISSUE_LIMITS.raisePasses; pass += 1) {
    const { candidates: wanted, issues } = await raiseOnce(sql, candidates);
    // The outcome of an earlier pass counts: this pass only finds its issues again.
    for (const issue of issues) if (!raised.has(issue.issueId)) raised.set(issue.issueId, issue);
    if (issues.length === wanted) return [...raised.values()];
  }
  throw new Error("Issues changed again and again while they were raised.");
}

const isOfStatements = (sql: Transaction): Fragment => sql`(i.evidence ? 'statement' and k.evidence ? 'statement')`;

/**
 * The evidence of the issue `i` after a run has found it again, with the same hash, as `k`. The lines of a file that was withdrawn
 * and imported again have other ids, and a line may have another candidate. A decided issue keeps what the person has decided by.
 */
const refreshed = (sql: Transaction): Fragment => sql`
  case when i.evidence_hash <> k.evidence_hash or not ${isOfStatements(sql)} then i.evidence
    when i.status in ('closed', 'attributed') then jsonb_set(i.evidence, '{statement,lineIds}', k.evidence #> '{statement,lineIds}')
    else i.evidence || jsonb_build_object('statement', k.evidence -> 'statement') end`;

/** Whether the issue `i` has the identity of a candidate. */
const isOfIdentity = (sql: Transaction, candidate: "c" | "k"): Fragment => {
  const other = sql(candidate);
  return sql`i.account_key = ${other}.account_key and i.kind = ${other}.kind and i.subject_key = ${other}.subject_key
    and coalesce(i.station_id, 0) = coalesce(${other}.station_id, 0)`;
};

/** The payment of an undecided issue that is not about funds. */
const paymentOf = (sql: Transaction): Fragment => {
  const isFollowed = sql`(${isOfStatements(sql)} and i.money_names = '{}' and i.status not in ('closed', 'attributed'))`;
  return sql`
    intent_id = case when ${isFollowed} then k.intent_id else i.intent_id end,
    order_id = case when ${isFollowed} then k.order_id else i.order_id end`;
};

/**
 * One pass. It neither changes nor returns an issue that another transaction decides, ends or begins to attribute at this
 * moment, because the statement has read the earlier state of the issue.
 */
async function raiseOnce(
  sql: Transaction,
  candidates: Fragment,
): Promise<{ readonly candidates: number; readonly issues: readonly RaisedIssue[] }> {
  const rows = await sql<
    {
      candidates: number;
      issue_id: number | null;
      outcome: RaisedIssue["outcome"];
      supersedes_id: number | null;
    }[]
  >`
    with given (organization_id, account_key, station_id, kind, subject_key, evidence_status, evidence_type, amount_minor,
      currency, source, config_id, statement_account_id, intent_id, order_id, provider_reference, evidence, is_money,
      said_account, supersedes_id) as (${candidates}),
    candidate as (
      select distinct on (account_key, kind, subject_key, coalesce(station_id, 0)) given.*,
        issue_evidence_hash(amount_minor, currency, evidence_status, evidence_type) as evidence_hash
      from given order by account_key, kind, subject_key, coalesce(station_id, 0), amount_minor, currency, evidence_status,
        evidence_type, evidence
    ),
    known as materialized (
      select c.*, i.issue_id, i.status as known_status, coalesce(i.newest, 0) as newest,
        i.evidence_hash = c.evidence_hash as is_same
      from candidate c left join lateral (
        select *, max(i.generation) over () as newest from issues i where ${isOfIdentity(sql, "c")}
        order by i.status in ('closed', 'attributed') and i.evidence_hash = c.evidence_hash desc, i.generation desc limit 1) i on true
      -- Materialized, so that the statement finds all issues before it inserts the first one.
      order by c.account_key, c.kind, c.subject_key
    ),
    seen as (
      update issues i set last_seen_at = now(), evidence = ${refreshed(sql)}, ${paymentOf(sql)},
        superseded_by = case when not exists (select from issues n where n.issue_id = i.superseded_by and n.kind = i.kind)
          then i.superseded_by end
      from known k
      where i.issue_id = k.issue_id and i.status <> 'ended' and (k.is_same or i.attribution is not null)
      returning i.issue_id, 'seen' as outcome
    ),
    changed as (
      update issues i set last_seen_at = now(),
        status = case when i.assignee_id is null then 'open' else 'assigned' end,
        resolved_at = null, reason = null,
        said_differently = i.said_differently or (i.money_names <> '{}'
          and (i.amount_minor, i.currency) is distinct from (k.amount_minor, k.currency)),
        amount_minor = k.amount_minor, currency = k.currency, evidence_hash = k.evidence_hash,
        evidence = case when k.is_same then ${refreshed(sql)} else k.evidence end, ${paymentOf(sql)},
        prior_evidence = case when k.is_same then i.prior_evidence else (
          select coalesce(jsonb_agg(one order by place), '[]') from (
            select one, place from jsonb_array_elements(i.prior_evidence || jsonb_build_object(
                'until', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                'evidence_hash', encode(i.evidence_hash, 'hex'),
                'amount_minor', i.amount_minor::text, 'currency', i.currency, 'evidence', i.evidence))
              with ordinality as each (one, place)
            order by place desc limit ${ISSUE_LIMITS.priorEvidence}) newest) end
      from known k
      where i.issue_id = k.issue_id and i.attribution is null
        and (i.status = 'ended' or (i.status in ('open', 'assigned') and not k.is_same))
      returning i.issue_id, case when k.known_status = 'ended' then 'returned' else 'changed' end as outcome
    ),
    raised as (
      insert into issues (organization_id, account_key, station_id, kind, subject_key, generation, supersedes_id, source,
        config_id, statement_account_id, intent_id, order_id, amount_minor, currency, provider_reference, evidence,
        evidence_hash, money_names)
      select k.organization_id, k.account_key, k.station_id, k.kind, k.subject_key, k.newest + 1,
        coalesce(k.issue_id, k.supersedes_id), k.source, k.config_id, k.statement_account_id, k.intent_id, k.order_id,
        k.amount_minor, k.currency, coalesce(k.provider_reference, ''), k.evidence, k.evidence_hash,
        case when not k.is_money then '{}'
          when k.config_id is null then coalesce(names_of_statement_money(k.statement_account_id, k.subject_key), '{}')
          else coalesce(names_of_money(k.config_id,
            (select p from provider_payments p where p.intent_id = k.intent_id), k.said_account, k.subject_key), '{}') end
      from known k
      where k.issue_id is null or (k.known_status in ('closed', 'attributed') and not k.is_same)
      on conflict do nothing
      returning issue_id, case when supersedes_id is null then 'opened' else 'superseded' end as outcome, supersedes_id
    ),
    replaced as (
      update issues i set superseded_by = r.issue_id
      from (
        select issue_id, supersedes_id from raised
        union all
        select issue_id, other_id from known k cross join lateral (
          select i.issue_id as other_id from issues i where ${isOfIdentity(sql, "k")}
            and i.issue_id <> k.issue_id and i.status in ('closed', 'attributed') and i.superseded_by is null) others
        where k.newest > 1 and (k.is_same or k.known_status not in ('closed', 'attributed'))
      ) r
      where i.issue_id = r.supersedes_id
    ),
    outcomes as (
      select issue_id, outcome, supersedes_id from raised
      union all select issue_id, outcome, null from changed
      union all select issue_id, outcome, null from seen
    )
    select wanted.candidates, o.issue_id, o.outcome, o.supersedes_id
    from (select count(*) as candidates from candidate) wanted left join outcomes o on true`;
  const issues = rows.flatMap(({ issue_id: issueId, outcome, supersedes_id: supersedesId }) =>
    issueId === null ? [] : { issueId, outcome, supersedesId },
  );
  return { candidates: rows[0]?.candidates ?? 0, issues };
}
