/** The issues' table: rows, lists by filter, and the changes of the life cycle. */
import type { IssueEvidence, IssueFilter, IssueKind, IssueStatus, Proposal } from "../../bus/messages/issues.ts";
import type { Json, Queryable, Transaction } from "../../db/pool.ts";

export interface IssueRow {
  readonly issue_id: number;
  readonly organization_id: number;
  readonly account_key: string;
  readonly config_id: number | null;
  readonly kind: IssueKind;
  readonly status: IssueStatus;
  readonly source: "provider" | "statement";
  /** What it is about, within its account: for money the asserted payment (services/bus/messages/intents.ts). */
  readonly subject_key: string;
  readonly station_id: number | null;
  readonly intent_id: number | null;
  readonly order_id: number | null;
  readonly amount_minor: string | null;
  readonly currency: string | null;
  readonly provider_reference: string;
  readonly evidence: IssueEvidence;
  readonly evidence_hash: string;
  readonly assignee_id: number | null;
  readonly supersedes_id: number | null;
  readonly superseded_by: number | null;
  readonly opened_at: Date;
  readonly last_seen_at: Date;
  readonly resolved_at: Date | null;
  readonly resolved_by: number | null;
  readonly reason: string | null;
  readonly transaction_id: number | null;
  /** The request to the payment seam that is under way (services/providers/attributions.ts). */
  readonly attribution: Json | null;
  /** Every match key of its money: of its config, of the registered account, and of each asserted account. Empty: no money. */
  readonly money_names: readonly string[];
  /** Different amounts were asserted, or more accounts than are stored, also beyond what the evidence stores. */
  readonly said_differently: boolean;
  /** The attribution that waits for a second person. */
  readonly proposal: Proposal | null;
}

export const issueColumns = (sql: Queryable) => sql`
  issue_id, organization_id, account_key, config_id, kind, status, source, subject_key, station_id, intent_id, order_id,
  amount_minor::text as amount_minor, currency, provider_reference, evidence, encode(evidence_hash, 'hex') as evidence_hash,
  assignee_id, supersedes_id, superseded_by, opened_at, last_seen_at, resolved_at, resolved_by, reason, transaction_id,
  attribution, money_names, said_differently, waiting_proposal(issues) as proposal`;

export interface IssueKey {
  readonly organizationId: number;
  readonly issueId: number;
}

export async function findIssue(sql: Queryable, key: IssueKey): Promise<IssueRow | undefined> {
  const [row] = await sql<IssueRow[]>`
    select ${issueColumns(sql)} from issues
    where organization_id = ${key.organizationId} and issue_id = ${key.issueId}`;
  return row;
}

/** The issue, locked until the transaction ends. */
export async function lockIssue(sql: Transaction, key: IssueKey): Promise<IssueRow | undefined> {
  const [row] = await sql<IssueRow[]>`
    select ${issueColumns(sql)} from issues
    where organization_id = ${key.organizationId} and issue_id = ${key.issueId} for update`;
  return row;
}

export interface Filtered {
  readonly organizationId: number;
  readonly filter: IssueFilter;
}

/** The condition of a filter; a part that is left out excludes no issue. */
export const ofFilter = (sql: Queryable, { organizationId, filter }: Filtered) => {
  const { status, isUnresolved, kind, source, accountKey, stationId, assigneeId, currency } = filter;
  const { leastMinor, mostMinor, leastAgeMs } = filter;
  const resolvedOrNot =
    isUnresolved === true ? sql`and status in ('open', 'assigned')` : sql`and resolved_at is not null`;
  return sql`
    organization_id = ${organizationId}
    ${status === undefined ? sql`` : sql`and status = ${status}`}
    ${isUnresolved === undefined ? sql`` : resolvedOrNot}
    ${kind === undefined ? sql`` : sql`and kind = ${kind}`}
    ${source === undefined ? sql`` : sql`and source = ${source}`}
    ${accountKey === undefined ? sql`` : sql`and account_key = ${accountKey}`}
    ${stationId === undefined ? sql`` : sql`and station_id = ${stationId}`}
    ${assigneeId === undefined ? sql`` : sql`and assignee_id = ${assigneeId}`}
    ${currency === undefined ? sql`` : sql`and currency = ${currency}`}
    ${leastMinor === undefined ? sql`` : sql`and abs(amount_minor) >= ${leastMinor}::bigint`}
    ${mostMinor === undefined ? sql`` : sql`and abs(amount_minor) <= ${mostMinor}::bigint`}
    ${leastAgeMs === undefined ? sql`` : sql`and opened_at <= now() - ${leastAgeMs}::float8 * interval '1 ms'`}`;
};

/** The organization's issues that the filter names, newest first, those before one of them. */
export async function listIssues(
  sql: Queryable,
  page: Filtered & { readonly beforeId: number | undefined; readonly limit: number },
): Promise<IssueRow[]> {
  const before = page.beforeId === undefined ? sql`` : sql`and issue_id < ${page.beforeId}`;
  return sql<IssueRow[]>`
    select ${issueColumns(sql)} from issues where ${ofFilter(sql, page)} ${before}
    order by issue_id desc limit ${page.limit}`;
}

/** The oldest unresolved issues that the filter names, up to `throughId`. */
export async function listUnresolved(
  sql: Queryable,
  page: Filtered & { readonly throughId: number | undefined; readonly limit: number },
): Promise<IssueRow[]> {
  const through = page.throughId === undefined ? sql`` : sql`and issue_id <= ${page.throughId}`;
  return sql<IssueRow[]>`
    select ${issueColumns(sql)} from issues
    where ${ofFilter(sql, page)} ${through} and status in ('open', 'assigned')
    order by issue_id limit ${page.limit}`;
}

export interface IssueResolution {
  readonly status: "attributed" | "closed";
  readonly by: number;
  readonly reason: string;
  readonly orderId: number | null;
  readonly transactionId: number | null;
}

export async function resolveIssue(sql: Transaction, issueId: number, resolution: IssueResolution): Promise<IssueRow> {
  const { status, by, reason, orderId, transactionId } = resolution;
  const [row] = await sql<[IssueRow]>`
    update issues set status = ${status}, resolved_at = now(), resolved_by = ${by}, reason = ${reason},
      order_id = coalesce(${orderId}, order_id), transaction_id = ${transactionId}, attribution = null,
      attributed_since = null
    where issue_id = ${issueId} returning ${issueColumns(sql)}`;
  return row;
}

type BeforeClosing = Pick<IssueRow, "issue_id" | "kind" | "status" | "assignee_id">;

/**
 * Closes those of the issues that are not resolved yet, have no money and are as they were read; returns their state before.
 * `changed`: those that have other evidence by now, by id.
 */
export async function closeIssuesWithoutMoney(
  sql: Transaction,
  {
    issues,
    by,
    reason,
  }: {
    readonly issues: readonly Pick<IssueRow, "issue_id" | "evidence_hash">[];
    readonly by: number;
    readonly reason: string;
  },
): Promise<{ readonly closed: readonly BeforeClosing[]; readonly changed: readonly number[] }> {
  const ids = issues.map(({ issue_id: issueId }) => issueId);
  const seen = new Map(issues.map(({ issue_id: issueId, evidence_hash: hash }) => [issueId, hash]));
  const locked = await sql<(BeforeClosing & Pick<IssueRow, "evidence_hash">)[]>`
    select issue_id, kind, status, assignee_id, encode(evidence_hash, 'hex') as evidence_hash from issues
    where issue_id = any(${ids}::bigint[]) and status in ('open', 'assigned') and money_names = '{}'
    order by issue_id for update`;
  const isAsSeen = ({ issue_id: issueId, evidence_hash: hash }: (typeof locked)[number]) => seen.get(issueId) === hash;
  const closed = locked.filter(isAsSeen);
  await sql`
    update issues set status = 'closed', resolved_at = now(), resolved_by = ${by}, reason = ${reason}
    where issue_id = any(${closed.map(({ issue_id: issueId }) => issueId)}::bigint[])`;
  return {
    closed,
    changed: locked.filter((row) => !isAsSeen(row)).map(({ issue_id: issueId }) => issueId),
  };
}

/** Whether a closed period contains the issue. A period close locks its issues, so the answer holds while the issue is locked. */
export async function isInClosedPeriod(sql: Transaction, issueId: number): Promise<boolean> {
  const rows = await sql`select from closing_issues where issue_id = ${issueId} limit 1`;
  return rows.count > 0;
}

/** A closing is undone: the issue is as it was before. */
export async function reopenIssue(sql: Transaction, issueId: number): Promise<IssueRow> {
  const [row] = await sql<[IssueRow]>`
    update issues set status = case when assignee_id is null then 'open' else 'assigned' end,
      resolved_at = null, resolved_by = null, reason = null
    where issue_id = ${issueId} returning ${issueColumns(sql)}`;
  return row;
}

export async function assignIssue(sql: Transaction, issueId: number, assigneeId: number | null): Promise<IssueRow> {
  const [row] = await sql<[IssueRow]>`
    update issues set assignee_id = ${assigneeId}, status = ${assigneeId === null ? "open" : "assigned"}
    where issue_id = ${issueId} returning ${issueColumns(sql)}`;
  return row;
}

/** Whether the person is of the organization and may decide issues. */
export async function mayDecideIssues(
  sql: Queryable,
  { organizationId, userId }: { readonly organizationId: number; readonly userId: number },
): Promise<boolean> {
  const rows = await sql`
    select 1 from users where organization_id = ${organizationId} and user_id = ${userId}
      and role = 'reconciliation_operator' and status = 'active'`;
  return rows.length > 0;
}

export interface UnresolvedIssues {
  readonly oldestAgeMs: number;
  readonly byKind: readonly { readonly kind: IssueKind; readonly count: number }[];
}

/** For the metrics: how many wait for a person, by kind, and for how long the oldest has. */
export async function summarizeUnresolved(sql: Queryable): Promise<UnresolvedIssues> {
  const rows = await sql<{ kind: IssueKind; count: number; oldest_age_ms: number }[]>`
    select kind, count(*)::int as count,
      (extract(epoch from clock_timestamp() - min(opened_at)) * 1000)::float8 as oldest_age_ms
    from issues where status in ('open', 'assigned') group by kind`;
  return {
    oldestAgeMs: Math.max(0, ...rows.map((row) => row.oldest_age_ms)),
    byKind: rows.map(({ kind, count }) => ({ kind, count })),
  };
}
