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
  /** The subject of the issue within its account: for money the key of the payment (services/bus/messages/intents.ts). */
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
  /** Every match key of its provider payment: of its config, of the registered and of each asserted account. Empty without one. */
  readonly money_names: readonly string[];
  /** Different amounts were asserted, or more accounts than are stored, also beyond what the evidence stores. */
  readonly said_differently: boolean;
  /** The attribution that waits for a second person. */
  readonly proposal: Proposal | null;
}

const issueColumns = (sql: Queryable) => sql`
  issue_id, organization_id, account_key, config_id, kind, status, source, subject_key, station_id, intent_id, order_id,
  amount_minor::text as amount_minor, currency, provider_reference, evidence, encode(evidence_hash, 'hex') as evidence_hash,
  assignee_id, supersedes_id, superseded_by, opened_at, last_seen_at, resolved_at, resolved_by, reason, transaction_id,
  attribution, money_names, said_differently, waiting_proposal(issues) as proposal`;

export interface IssueKey {
  readonly organizationId: number;
  readonly issueId: number;
}

export async function getIssue(sql: Queryable, key: IssueKey, lock = sql``): Promise<IssueRow | undefined> {
  const [row] = await sql<IssueRow[]>`
    select ${issueColumns(sql)} from issues
    where organization_id = ${key.organizationId} and issue_id = ${key.issueId} ${lock}`;
  return row;
}

/** The issue, locked until the transaction ends. */
export const lockIssue = async (tx: Transaction, key: IssueKey): Promise<IssueRow | undefined> =>
  await getIssue(tx, key, tx`for update`);

/** Those of the issues that are not about money, locked until the transaction ends. */
export async function lockIssuesWithoutMoney(
  sql: Transaction,
  { organizationId, issueIds }: { readonly organizationId: number; readonly issueIds: readonly number[] },
): Promise<IssueRow[]> {
  return sql<IssueRow[]>`
    select ${issueColumns(sql)} from issues
    where organization_id = ${organizationId} and issue_id = any(${[...issueIds]}::bigint[]) and money_names = '{}'
    order by issue_id for update`;
}

export interface Filtered {
  readonly organizationId: number;
  readonly filter: IssueFilter;
}

/** The condition of a filter. A field that is left out selects all issues. */
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

/** The organization's issues that match the filter, newest first: the newest of all, or those before one of them. */
export async function listIssues(
  sql: Queryable,
  page: Filtered & { readonly beforeId: number | undefined; readonly limit: number },
): Promise<IssueRow[]> {
  const before = page.beforeId === undefined ? sql`` : sql`and issue_id < ${page.beforeId}`;
  return sql<IssueRow[]>`
    select ${issueColumns(sql)} from issues where ${ofFilter(sql, page)} ${before}
    order by issue_id desc limit ${page.limit}`;
}

/** The oldest unresolved issues that match the filter, up to `throughId`. */
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

interface IssueResolution {
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
 * Closes the issues that are not resolved yet, have no money, and still have the evidence with which the caller has read them.
 * Returns their state before. `changed` has the ids of those whose evidence has changed.
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
  const readHashes = new Map(issues.map(({ issue_id: issueId, evidence_hash: hash }) => [issueId, hash]));
  const locked = await sql<(BeforeClosing & Pick<IssueRow, "evidence_hash">)[]>`
    select issue_id, kind, status, assignee_id, encode(evidence_hash, 'hex') as evidence_hash from issues
    where issue_id = any(${ids}::bigint[]) and status in ('open', 'assigned') and money_names = '{}'
    order by issue_id for update`;
  const isAsRead = ({ issue_id: issueId, evidence_hash: hash }: (typeof locked)[number]) =>
    readHashes.get(issueId) === hash;
  const closed = locked.filter(isAsRead);
  await sql`
    update issues set status = 'closed', resolved_at = now(), resolved_by = ${by}, reason = ${reason}
    where issue_id = any(${closed.map(({ issue_id: issueId }) => issueId)}::bigint[])`;
  return {
    closed,
    changed: locked.filter((row) => !isAsRead(row)).map(({ issue_id: issueId }) => issueId),
  };
}

/** Those of the issues that a closed period contains. A period close locks its issues, so the answer holds while they are locked. */
export async function findInClosedPeriods(sql: Transaction, issueIds: readonly number[]): Promise<ReadonlySet<number>> {
  const rows = await sql<{ issue_id: number }[]>`
    select issue_id from closing_issues where issue_id = any(${[...issueIds]}::bigint[])`;
  return new Set(rows.map((row) => row.issue_id));
}

/** Opens the issues again, or assigns them as before their closings. */
export async function reopenIssues(sql: Transaction, issueIds: readonly number[]): Promise<IssueRow[]> {
  return sql<IssueRow[]>`
    update issues set status = case when assignee_id is null then 'open' else 'assigned' end,
      resolved_at = null, resolved_by = null, reason = null
    where issue_id = any(${[...issueIds]}::bigint[]) returning ${issueColumns(sql)}`;
}

export async function assignIssue(sql: Transaction, issueId: number, assigneeId: number | null): Promise<IssueRow> {
  const [row] = await sql<[IssueRow]>`
    update issues set assignee_id = ${assigneeId}, status = ${assigneeId === null ? "open" : "assigned"}
    where issue_id = ${issueId} returning ${issueColumns(sql)}`;
  return row;
}

/** Whether the person belongs to the organization and may decide issues. */
export async function mayDecideIssues(
  sql: Queryable,
  { organizationId, userId }: { readonly organizationId: number; readonly userId: number },
): Promise<boolean> {
  const rows = await sql`
    select 1 from users where organization_id = ${organizationId} and user_id = ${userId}
      and role = 'reconciliation_operator' and status = 'active'`;
  return rows.length > 0;
}

/** The number and the station by which people know an order. */
export async function findOrders(
  sql: Queryable,
  { organizationId, orderIds }: { readonly organizationId: number; readonly orderIds: readonly number[] },
): Promise<{ readonly order_id: number; readonly display_number: number; readonly station_id: number }[]> {
  return await sql<{ order_id: number; display_number: number; station_id: number }[]>`
    select order_id, display_number, station_id from orders
    where organization_id = ${organizationId} and order_id = any(${[...orderIds]}::bigint[]) order by order_id`;
}

export interface UnresolvedIssues {
  readonly oldestAgeMs: number;
  readonly byKind: readonly { readonly kind: IssueKind; readonly count: number }[];
}

/** For the metrics: how many issues wait for a person, by kind, and how long the oldest has waited. */
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
