/** Money that does not fit. */
import type { ISSUE_KINDS } from "../../bus/messages/providers.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { Json } from "./json.ts";

export type IssueKind = (typeof ISSUE_KINDS)[number];

/** An attribution under way: everything that the payment seam is asked, so that it can be asked the very same again. */
export interface Attribution {
  readonly intentId: number;
  readonly attestationId: string;
  readonly stationId: number;
  readonly orderId: number;
  readonly amountMinor: string;
  readonly currency: string;
  readonly reference: string;
  readonly reason: string;
  readonly by: { readonly userId: number; readonly name: string; readonly role: string };
}

export interface IssueRow {
  readonly issue_id: number;
  readonly organization_id: number;
  readonly config_id: number;
  readonly kind: IssueKind;
  readonly status: "open" | "attributed" | "closed";
  readonly money_key: string;
  readonly station_id: number | null;
  readonly intent_id: number | null;
  readonly order_id: number | null;
  readonly amount_minor: string | null;
  readonly currency: string | null;
  readonly provider_reference: string;
  readonly evidence: Record<string, unknown>;
  readonly opened_at: Date;
  readonly resolved_at: Date | null;
  readonly resolved_by: number | null;
  readonly reason: string | null;
  readonly transaction_id: number | null;
  readonly attribution: Attribution | null;
}

const columns = (sql: Queryable) => sql`
  issue_id, organization_id, config_id, kind, status, money_key, station_id, intent_id, order_id,
  amount_minor::text as amount_minor, currency, provider_reference, evidence, opened_at, resolved_at, resolved_by,
  reason, transaction_id, attribution`;

export interface NewIssue {
  readonly organizationId: number;
  readonly configId: number;
  readonly kind: IssueKind;
  readonly moneyKey: string;
  readonly payment:
    | { readonly stationId: number; readonly intentId: number; readonly orderDisplayNumber: number }
    | undefined;
  readonly amountMinor: string | null;
  readonly currency: string | null;
  readonly providerReference: string;
  readonly evidence: Readonly<Record<string, unknown>>;
}

/** Opens an issue unless this money has it already; returns its id when it is new. */
export async function insertIssue(sql: Transaction, issue: NewIssue): Promise<number | undefined> {
  const { organizationId, configId, kind, moneyKey, payment, amountMinor, currency, providerReference } = issue;
  const stationId = payment?.stationId ?? null;
  const [row] = await sql<{ issue_id: number }[]>`
    insert into provider_issues (organization_id, config_id, kind, money_key, station_id, intent_id, order_id,
      amount_minor, currency, provider_reference, evidence)
    values (${organizationId}, ${configId}, ${kind}, ${moneyKey}, ${stationId}, ${payment?.intentId ?? null},
      (select order_id from orders
        where station_id = ${stationId}::bigint and display_number = ${payment?.orderDisplayNumber ?? null}::bigint),
      ${amountMinor}::bigint, ${currency}, ${providerReference}, ${sql.json(issue.evidence as Json)})
    on conflict (config_id, kind, money_key) do nothing
    returning issue_id`;
  return row?.issue_id;
}

/** Whether this money pays, or is about to pay, an order by an attribution. */
export async function isAttributed(
  sql: Queryable,
  money: { readonly configId: number; readonly moneyKey: string },
): Promise<boolean> {
  const rows = await sql`
    select 1 from provider_issues
    where config_id = ${money.configId} and money_key = ${money.moneyKey}
      and (status = 'attributed' or attribution is not null)`;
  return rows.length > 0;
}

/** The organization's issues, newest first, those before one of them. */
export async function selectIssues(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly status: IssueRow["status"] | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<IssueRow[]> {
  const ofStatus = page.status === undefined ? sql`` : sql`and status = ${page.status}`;
  const before = page.beforeId === undefined ? sql`` : sql`and issue_id < ${page.beforeId}`;
  return sql<IssueRow[]>`
    select ${columns(sql)} from provider_issues where organization_id = ${page.organizationId} ${ofStatus} ${before}
    order by issue_id desc limit ${page.limit}`;
}

export interface IssueKey {
  readonly organizationId: number;
  readonly issueId: number;
}

/** The issue, held until the transaction ends. */
export async function lockIssue(sql: Transaction, key: IssueKey): Promise<IssueRow | undefined> {
  const [row] = await sql<IssueRow[]>`
    select ${columns(sql)} from provider_issues
    where organization_id = ${key.organizationId} and issue_id = ${key.issueId} for update`;
  return row;
}

/**
 * Notes what the payment seam is about to be asked; false when the same money already pays, or is about to pay, an
 * order by another issue. The caller holds the issue and has seen that it is open and without an attribution.
 */
export async function startAttribution(sql: Transaction, issueId: number, attribution: Attribution): Promise<boolean> {
  const started = await sql`
    update provider_issues i set attribution = ${sql.json(attribution as unknown as Json)}, attributed_since = now()
    where i.issue_id = ${issueId} and not exists (
      select 1 from provider_issues o
      where o.config_id = i.config_id and o.money_key = i.money_key and o.issue_id <> i.issue_id
        and (o.status = 'attributed' or o.attribution is not null))`;
  return started.count === 1;
}

/** The seam has refused for good: the issue is as it was. */
export async function clearAttribution(sql: Transaction, issueId: number): Promise<void> {
  await sql`
    update provider_issues set attribution = null, attributed_since = null where issue_id = ${issueId}`;
}

export async function resolveIssue(
  sql: Transaction,
  issueId: number,
  resolution: {
    readonly status: "attributed" | "closed";
    readonly by: number;
    readonly reason: string;
    readonly orderId: number | null;
    readonly transactionId: number | null;
  },
): Promise<IssueRow> {
  const { status, by, reason, orderId, transactionId } = resolution;
  const [row] = await sql<[IssueRow]>`
    update provider_issues set status = ${status}, resolved_at = now(), resolved_by = ${by}, reason = ${reason},
      order_id = coalesce(${orderId}, order_id), transaction_id = ${transactionId}, attribution = null,
      attributed_since = null
    where issue_id = ${issueId} returning ${columns(sql)}`;
  return row;
}

/** Issues whose attribution was begun so long ago that whoever began it is gone. */
export async function listLeftAttributions(
  sql: Queryable,
  olderThanMs: number,
  limit: number,
): Promise<readonly IssueKey[]> {
  const rows = await sql<{ organization_id: number; issue_id: number }[]>`
    select organization_id, issue_id from provider_issues
    where attribution is not null and attributed_since < now() - ${olderThanMs}::float8 * interval '1 ms'
    order by attributed_since limit ${limit}`;
  return rows.map((row) => ({ organizationId: row.organization_id, issueId: row.issue_id }));
}

/**
 * Closes up to `limit` issues whose money has settled its own intent since: the cashier has mended the order and attested
 * it. Told in the trail as nobody's doing. Returns their ids.
 */
export async function closeSettledIssues(sql: Queryable, limit: number): Promise<readonly number[]> {
  const rows = await sql<{ issue_id: number }[]>`
    with settled as (
      update provider_issues i set status = 'closed', resolved_at = now(), transaction_id = t.transaction_id,
        reason = 'The cashier has settled this money since.'
      from transactions t
      where i.issue_id in (
          select o.issue_id from provider_issues o
          join transactions paid on paid.intent_id = o.intent_id and paid.reference = o.provider_reference
          where o.kind = 'settlement_refused' and o.status = 'open' and o.attribution is null
          order by o.issue_id limit ${limit} for update of o skip locked)
        and t.intent_id = i.intent_id
      returning i.issue_id, i.organization_id, i.kind, i.reason, i.transaction_id
    ), told as (
      insert into provider_events (organization_id, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data)
      select organization_id, 'system', 0, 'system', 'provider_issue_closed', 'provider_issue', issue_id,
        jsonb_build_object('kind', kind, 'reason', reason, 'transaction_id', transaction_id)
      from settled
    )
    select issue_id from settled`;
  return rows.map((row) => row.issue_id);
}
