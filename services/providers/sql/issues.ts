/** Issues and their attributions, and what an attribution reads of orders, which belong to the settlement service. */
import type { Caller } from "../../bus/messages/caller.ts";
import { moneyKey } from "../../bus/messages/intents.ts";
import type { ISSUE_KINDS, IssueEvidence } from "../../bus/messages/issues.ts";
import type { Json, Queryable, Transaction } from "../../db/pool.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { ConfigRow } from "./configs.ts";

export type IssueKind = (typeof ISSUE_KINDS)[number];

/** An attribution under way: the whole request to the payment seam, so that it can be repeated. */
export interface Attribution {
  readonly intentId: number;
  readonly attestationId: string;
  readonly stationId: number;
  readonly orderId: number;
  readonly amountMinor: string;
  readonly currency: string;
  readonly reference: string;
  readonly reason: string;
  readonly by: Pick<Caller, "userId" | "name" | "role">;
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
  readonly evidence: IssueEvidence;
  readonly opened_at: Date;
  readonly resolved_at: Date | null;
  readonly resolved_by: number | null;
  readonly reason: string | null;
  readonly transaction_id: number | null;
  readonly attribution: Attribution | null;
  /** Every match key of its money: of its config, of the registered account, and of each asserted account. */
  readonly money_names: readonly string[];
  /** Different amounts were asserted, or more accounts than are stored, also beyond what the evidence stores. */
  readonly said_differently: boolean;
}

const columns = (sql: Queryable) => sql`
  issue_id, organization_id, config_id, kind, status, money_key, station_id, intent_id, order_id,
  amount_minor::text as amount_minor, currency, provider_reference, evidence, opened_at, resolved_at, resolved_by,
  reason, transaction_id, attribution, money_names, said_differently`;

interface NewIssue {
  readonly organizationId: number;
  readonly configId: number;
  readonly kind: IssueKind;
  /** The money within its config (services/bus/messages/intents.ts). */
  readonly moneyName: string;
  readonly payment:
    | { readonly stationId: number; readonly intentId: number; readonly orderDisplayNumber: number }
    | undefined;
  readonly amountMinor: string | null;
  readonly currency: string | null;
  readonly providerReference: string;
  /** The account that the provider has asserted; empty where there is none. */
  readonly saidAccount: string;
  readonly evidence: IssueEvidence;
}

/** Opens an issue unless this money has it already and it is not attributed; returns its id when it is new. */
export async function insertIssue(sql: Transaction, issue: NewIssue): Promise<number | undefined> {
  const { organizationId, configId, kind, moneyName, payment, amountMinor, currency, providerReference } = issue;
  const stationId = payment?.stationId ?? null;
  const [row] = await sql<{ issue_id: number }[]>`
    insert into provider_issues (organization_id, config_id, kind, money_key, station_id, intent_id, order_id,
      amount_minor, currency, provider_reference, evidence, money_names)
    values (${organizationId}, ${configId}, ${kind}, ${moneyName}, ${stationId}, ${payment?.intentId ?? null},
      (select order_id from orders
        where station_id = ${stationId}::bigint and display_number = ${payment?.orderDisplayNumber ?? null}::bigint),
      ${amountMinor}::bigint, ${currency}, ${providerReference}, ${sql.json(issue.evidence as Json)},
      names_of_money(${configId},
        (select p from provider_payments p where intent_id = ${payment?.intentId ?? null}::bigint),
        ${issue.saidAccount}, ${moneyName}))
    on conflict (config_id, kind, money_key) where status <> 'attributed' do nothing
    returning issue_id`;
  return row?.issue_id;
}

/** What a person has decided about money: it pays, or is about to pay, an order; or it is closed as resolved outside. */
export interface Resolution {
  readonly issueId: number;
  readonly kind: IssueKind;
  readonly intentId: number | null;
  readonly status: "attributed" | "closed";
  readonly amountMinor: string | null;
  readonly currency: string | null;
}

/**
 * By any match key of the money, whichever config reports it. Without issues that were closed because their money has paid:
 * the payment shows that.
 */
export async function findResolutions(
  sql: Queryable,
  money: {
    readonly configId: number;
    readonly moneyName: string;
    readonly reference: string;
    readonly saidAccount: string;
  },
): Promise<readonly Resolution[]> {
  const { configId, moneyName, reference, saidAccount } = money;
  const rows = await sql<
    (Pick<IssueRow, "issue_id" | "kind" | "intent_id" | "amount_minor" | "currency"> & Pick<Resolution, "status">)[]
  >`
    select issue_id, kind, intent_id, amount_minor::text as amount_minor, currency,
      case status when 'closed' then 'closed' else 'attributed' end as status
    from provider_issues
    where money_names && names_of_money(${configId},
        (select p from provider_payments p where config_id = ${configId} and reference = ${reference}),
        ${saidAccount}, ${moneyName})
      and (status = 'attributed' or attribution is not null or (status = 'closed' and transaction_id is null))
    order by issue_id`;
  return rows.map((row) => {
    const { issue_id: issueId, kind, intent_id: intentId, status, amount_minor: amountMinor, currency } = row;
    return { issueId, kind, intentId, status, amountMinor, currency };
  });
}

type OtherIssue = Pick<IssueRow, "issue_id" | "status" | "amount_minor" | "currency" | "said_differently"> & {
  /** It pays, or is about to pay, an order. */
  readonly is_attributed: boolean;
};

/** The other issues of an issue's money, by any of its match keys. */
export async function findOtherIssues(sql: Queryable, issue: IssueRow): Promise<readonly OtherIssue[]> {
  return await sql<OtherIssue[]>`
    select issue_id, status, amount_minor::text as amount_minor, currency, said_differently,
      (status = 'attributed' or attribution is not null) as is_attributed
    from provider_issues
    where issue_id <> ${issue.issue_id} and money_names && ${[...issue.money_names]}::text[]
    order by issue_id`;
}

/** Every match key of an issue's money that the payment seam finds, also through other issues. */
export async function findNamesAtSeam(
  sql: Queryable,
  { config_id: configId, money_key: name }: Pick<IssueRow, "config_id" | "money_key">,
): Promise<readonly string[]> {
  const [row] = await sql<
    [{ names: string[] }]
  >`select names_of_settlement(0, ${moneyKey({ configId, name })}) as names`;
  return row.names;
}

/** A later assertion of money that has an issue already. */
export interface FurtherEvidence {
  readonly said: string;
  readonly learnedFrom: string;
  readonly amountMinor: string | null;
  readonly currency: string | null;
  readonly account: string;
}

/**
 * Stores a later assertion within the bound; a repeated one is not stored again. That another amount or account was asserted
 * is recorded beyond the bound too. True when the statement stored or recorded something.
 */
export async function addFurtherEvidence(
  sql: Transaction,
  issueId: number,
  evidence: FurtherEvidence,
): Promise<boolean> {
  const { said, learnedFrom, amountMinor, currency, account } = evidence;
  await sql`
    update provider_issues i set
      money_names = case when cardinality(named.names) <= ${PROVIDER_LIMITS.moneyNames} then named.names else i.money_names end,
      said_differently = i.said_differently or cardinality(named.names) > ${PROVIDER_LIMITS.moneyNames}
    from provider_issues known, lateral (
      select array_agg(distinct name order by name) as names
      from unnest(known.money_names || names_of_money(known.config_id,
        (select p from provider_payments p where intent_id = known.intent_id), ${account}, known.money_key)) as name
    ) named
    where i.issue_id = ${issueId} and known.issue_id = i.issue_id and named.names <> i.money_names`;
  const differs = await sql`
    update provider_issues set said_differently = true
    where issue_id = ${issueId} and not said_differently
      and (amount_minor, currency) is distinct from (${amountMinor}::bigint, ${currency}::text)`;
  const kept = await sql`
    update provider_issues set evidence = jsonb_set(evidence, '{further}',
      coalesce(evidence -> 'further', '[]') || jsonb_build_array(jsonb_build_object(
        'at', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'learned_from', ${learnedFrom}::text, 'said', ${said}::text,
        'same_amount', (amount_minor, currency) is not distinct from (${amountMinor}::bigint, ${currency}::text))))
    where issue_id = ${issueId} and coalesce(evidence ->> 'said', '') <> ${said}
      and not coalesce(evidence -> 'further', '[]') @> jsonb_build_array(jsonb_build_object('said', ${said}::text))
      and jsonb_array_length(coalesce(evidence -> 'further', '[]')) < ${PROVIDER_LIMITS.furtherEvidence}`;
  return differs.count + kept.count > 0;
}

/** The money's issue of this kind that is not attributed. */
export async function findIssueOfMoney(
  sql: Transaction,
  key: { readonly configId: number; readonly kind: IssueKind; readonly moneyName: string },
): Promise<Pick<Resolution, "issueId" | "kind" | "intentId"> | undefined> {
  const [row] = await sql<{ issue_id: number; intent_id: number | null }[]>`
    select issue_id, intent_id from provider_issues
    where config_id = ${key.configId} and kind = ${key.kind} and money_key = ${key.moneyName}
      and status <> 'attributed'`;
  return row === undefined ? undefined : { issueId: row.issue_id, kind: key.kind, intentId: row.intent_id };
}

/** The newest open issue that names the intent. */
export async function findOpenIssueOf(
  sql: Queryable,
  intentId: number,
): Promise<{ readonly issueId: number; readonly kind: IssueKind } | undefined> {
  const [row] = await sql<{ issue_id: number; kind: IssueKind }[]>`
    select issue_id, kind from provider_issues where intent_id = ${intentId} and status = 'open'
    order by issue_id desc limit 1`;
  return row === undefined ? undefined : { issueId: row.issue_id, kind: row.kind };
}

/** The organization's issues, newest first, those before one of them. */
export async function listIssues(
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

export async function findIssue(sql: Queryable, key: IssueKey): Promise<IssueRow | undefined> {
  const [row] = await sql<IssueRow[]>`
    select ${columns(sql)} from provider_issues
    where organization_id = ${key.organizationId} and issue_id = ${key.issueId}`;
  return row;
}

/** The issue, locked until the transaction ends. */
export async function lockIssue(sql: Transaction, key: IssueKey): Promise<IssueRow | undefined> {
  const [row] = await sql<IssueRow[]>`
    select ${columns(sql)} from provider_issues
    where organization_id = ${key.organizationId} and issue_id = ${key.issueId} for update`;
  return row;
}

/**
 * Stores the request to the payment seam; false when the same money pays, or is about to pay, an order by another issue.
 * The caller has locked the money and the issue, and has checked that it is open and without an attribution.
 */
export async function startAttribution(sql: Transaction, issueId: number, attribution: Attribution): Promise<boolean> {
  const started = await sql`
    update provider_issues i set attribution = ${sql.json(attribution as unknown as Json)}, attributed_since = now()
    where i.issue_id = ${issueId} and not exists (
      select 1 from provider_issues o
      where o.issue_id <> i.issue_id
        and o.money_names && i.money_names
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

/** Up to `limit` issues after `afterId`, by id, whose attribution is so old that its process must have ended. */
export async function listLeftAttributions(
  sql: Queryable,
  page: { readonly olderThanMs: number; readonly afterId: number; readonly limit: number },
): Promise<readonly IssueKey[]> {
  const rows = await sql<{ organization_id: number; issue_id: number }[]>`
    select organization_id, issue_id from provider_issues
    where attribution is not null and attributed_since < now() - ${page.olderThanMs}::float8 * interval '1 ms'
      and issue_id > ${page.afterId}
    order by issue_id limit ${page.limit}`;
  return rows.map((row) => ({ organizationId: row.organization_id, issueId: row.issue_id }));
}

/** Closes up to `limit` issues whose money has settled its intent since: the cashier has corrected the order and attested it. */
export async function closeSettledIssues(
  sql: Transaction,
  limit: number,
): Promise<readonly Pick<IssueRow, "issue_id" | "organization_id" | "kind" | "reason" | "transaction_id">[]> {
  return await sql<Pick<IssueRow, "issue_id" | "organization_id" | "kind" | "reason" | "transaction_id">[]>`
    update provider_issues i set status = 'closed', resolved_at = now(), transaction_id = t.transaction_id,
      reason = 'The cashier has settled this money since.'
    from transactions t
    where i.issue_id in (
        select o.issue_id from provider_issues o
        join transactions paid on paid.intent_id = o.intent_id and paid.reference = o.provider_reference
        where o.kind = 'settlement_refused' and o.status = 'open' and o.attribution is null
        order by o.issue_id limit ${limit} for update of o skip locked)
      and t.intent_id = i.intent_id
    returning i.issue_id, i.organization_id, i.kind, i.reason, i.transaction_id`;
}

/** Where an order was opened. */
export interface OrderPlace {
  readonly stationId: number;
  readonly filialId: number;
  /** The mode of the configs that its station uses. */
  readonly mode: ConfigRow["mode"];
}

/** The place of an order of the organization, or undefined. */
export async function findOrderPlace(
  sql: Queryable,
  key: { readonly organizationId: number; readonly orderId: number },
): Promise<OrderPlace | undefined> {
  const [row] = await sql<{ station_id: number; filial_id: number; sandbox: boolean }[]>`
    select o.station_id, s.filial_id, s.sandbox from orders o join stations s using (station_id)
    where o.organization_id = ${key.organizationId} and o.order_id = ${key.orderId}`;
  if (row === undefined) return undefined;
  return { stationId: row.station_id, filialId: row.filial_id, mode: row.sandbox ? "test" : "live" };
}

/** The order and the intent that this money has paid, by any of its match keys, or undefined. */
export async function findOrderPaidWith(
  sql: Queryable,
  moneyNames: readonly string[],
): Promise<{ readonly orderId: number; readonly intentId: number } | undefined> {
  const [row] = await sql<{ order_id: number; intent_id: number }[]>`
    select t.order_id, t.intent_id from paid_money_names n join transactions t using (transaction_id)
    where n.name = any(${[...moneyNames]}::text[]) order by t.transaction_id limit 1`;
  return row === undefined ? undefined : { orderId: row.order_id, intentId: row.intent_id };
}
