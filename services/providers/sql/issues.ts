/**
 * What only issues of provider money have, beside the life cycle of all issues (services/issues/sql): match keys,
 * further evidence and attributions. Also what an attribution reads about orders, which belong to the settlement
 * service.
 */
import type { Caller } from "../../bus/messages/caller.ts";
import type { IssueEvidence, IssueKind } from "../../bus/messages/issues.ts";
import type { Json, Queryable, Transaction } from "../../db/pool.ts";
import type { IssueKey, IssueRow } from "../../issues/sql/issues.ts";
import { providerAccountKey, type RaisedIssue, raiseIssues } from "../../issues/sql/raise.ts";
import { currentRequestId } from "../../runtime/log.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { ConfigRow } from "./configs.ts";

/** An attribution under way: the whole request to the payment seam, so that it can be repeated. */
export interface Attribution {
  readonly intentId: number;
  readonly attestationId: string;
  readonly stationId: number;
  readonly orderId: number;
  readonly amountMinor: string;
  readonly currency: string;
  readonly reference: string;
  /** Missing in attributions that version 0.2.0 has stored; then it is `dynamic_qr`. */
  readonly route?: "dynamic_qr" | "attested_terminal";
  readonly reason: string;
  readonly by: Pick<Caller, "userId" | "name" | "role">;
  /** The proposal of another person, which `by` has confirmed. */
  readonly proposal?: { readonly proposalId: number; readonly by: number; readonly byName: string };
  /** Of the request that began it. */
  readonly requestId?: string | undefined;
}

/** The request that an issue has at the payment seam. */
export function attributionOf({ attribution }: Pick<IssueRow, "attribution">): Attribution | null {
  return attribution as unknown as Attribution | null;
}

interface NewIssue {
  readonly organizationId: number;
  readonly configId: number;
  readonly kind: IssueKind;
  /** The match key of the money within its config (services/bus/messages/intents.ts). */
  readonly moneyName: string;
  readonly payment:
    | { readonly stationId: number; readonly intentId: number; readonly orderDisplayNumber: number }
    | undefined;
  readonly amountMinor: string | null;
  readonly currency: string | null;
  readonly providerReference: string;
  /** The account that the provider has asserted; empty where there is none. */
  readonly assertedAccount: string;
  readonly evidence: IssueEvidence;
  /** The decided issue of the same money whose evidence this one changes. */
  readonly supersedesId?: number | undefined;
}

/** Raises the issue; undefined when there is one of the same identity and evidence. */
export async function insertIssue(sql: Transaction, issue: NewIssue): Promise<RaisedIssue | undefined> {
  const { organizationId, configId, kind, moneyName, payment, amountMinor, currency, providerReference } = issue;
  const stationId = payment?.stationId ?? null;
  const [raised] = await raiseIssues(
    sql,
    sql`
      select ${organizationId}::bigint, ${providerAccountKey(configId)}::text, ${stationId}::bigint, ${kind}::text,
        ${moneyName}::text, 'paid', 'payment', ${amountMinor}::bigint, ${currency}::text, 'provider', ${configId}::bigint,
        null::bigint, ${payment?.intentId ?? null}::bigint,
        (select order_id from orders
          where station_id = ${stationId}::bigint and display_number = ${payment?.orderDisplayNumber ?? null}::bigint),
        ${providerReference}::text, ${sql.json(issue.evidence as Json)}::jsonb, true, ${issue.assertedAccount}::text,
        ${issue.supersedesId ?? null}::bigint`,
  );
  return raised?.outcome === "opened" || raised?.outcome === "superseded" ? raised : undefined;
}

/** What a person has decided about money: it pays, or is about to pay, an order; or it is closed as resolved outside. */
export interface Resolution {
  readonly issueId: number;
  readonly kind: IssueKind;
  readonly intentId: number | null;
  readonly status: "attributed" | "closed";
  readonly amountMinor: string | null;
  readonly currency: string | null;
  /** The issue has this assertion as evidence already. */
  readonly isKnown: boolean;
}

/**
 * Finds resolutions by any match key of the money, whichever config reports it. Leaves out issues that were closed
 * because their money has paid: the payment shows that.
 */
export async function findResolutions(
  sql: Queryable,
  money: {
    readonly configId: number;
    readonly moneyName: string;
    readonly reference: string;
    readonly assertedAccount: string;
    readonly said: string;
  },
): Promise<readonly Resolution[]> {
  const { configId, moneyName, reference, assertedAccount, said } = money;
  const rows = await sql<
    (Pick<IssueRow, "issue_id" | "kind" | "intent_id" | "amount_minor" | "currency"> &
      Pick<Resolution, "status"> & { readonly is_known: boolean })[]
  >`
    select issue_id, kind, intent_id, amount_minor::text as amount_minor, currency,
      case status when 'closed' then 'closed' else 'attributed' end as status,
      coalesce(evidence ->> 'said', '') = ${said}
        or coalesce(evidence -> 'further', '[]') @> jsonb_build_array(jsonb_build_object('said', ${said}::text)) as is_known
    from issues
    where money_names && names_of_money(${configId},
        (select p from provider_payments p where config_id = ${configId} and reference = ${reference}),
        ${assertedAccount}, ${moneyName})
      and (status = 'attributed' or attribution is not null or (status = 'closed' and transaction_id is null))
    order by superseded_by is not null, issue_id`;
  return rows.map((row) => {
    const { issue_id: issueId, kind, intent_id: intentId, status, amount_minor: amountMinor, currency } = row;
    return { issueId, kind, intentId, status, amountMinor, currency, isKnown: row.is_known };
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
    from issues
    where issue_id <> ${issue.issue_id} and money_names && ${[...issue.money_names]}::text[] and status <> 'ended'
    order by issue_id`;
}

/**
 * The key by which the payment seam knows the money: of a provider config, or of a statement account without a config.
 */
export const moneyKeyOf = ({
  account_key: accountKey,
  subject_key: name,
}: Pick<IssueRow, "account_key" | "subject_key">) => `${accountKey}:${name}`;

/**
 * The statement account of an issue, and the route of its line: a payment at a terminal, or a bank's credit. Undefined where
 * the line is gone.
 */
export async function findStatementAccount(
  sql: Queryable,
  issueId: number,
): Promise<
  | {
      readonly mode: ConfigRow["mode"];
      readonly filialId: number | null;
      readonly route: "dynamic_qr" | "attested_terminal";
    }
  | undefined
> {
  const [row] = await sql<{ mode: ConfigRow["mode"]; filial_id: number | null; kind: string }[]>`
    select a.mode, a.filial_id, l.kind from issues i
    join statement_accounts a on a.account_id = i.statement_account_id
    join statement_lines l on l.account_id = a.account_id
      and l.line_id = any (array(select jsonb_array_elements_text(i.evidence #> '{statement,lineIds}')::bigint))
    where i.issue_id = ${issueId} order by l.line_id limit 1`;
  if (row === undefined) return undefined;
  const route = row.kind === "payment" ? "attested_terminal" : "dynamic_qr";
  return { mode: row.mode, filialId: row.filial_id, route };
}

/** Whether every file that has the issue's line is about to be withdrawn. False for an issue of callbacks alone. */
export async function isBeingWithdrawn(sql: Queryable, issueId: number): Promise<boolean> {
  const [row] = await sql<[{ is_withdrawing: boolean }]>`
    select coalesce(bool_and(f.status = 'withdrawing'), false) as is_withdrawing from issues i
    join statement_line_sources s on s.line_id = any (array(select jsonb_array_elements_text(i.evidence #> '{statement,lineIds}')::bigint))
    join statement_imports f using (import_id)
    where i.issue_id = ${issueId} and i.source = 'statement'`;
  return row.is_withdrawing;
}

/**
 * Requests a run over the day of a statement's issue that a person has decided, or that is open again. Its line may be
 * gone.
 */
export async function wantRunOfIssue(sql: Transaction, issueId: number): Promise<void> {
  await sql`
    select want_run(a.account_id, issue_day(i, a.time_zone), issue_day(i, a.time_zone), false) from issues i
    join statement_accounts a on a.account_id = i.statement_account_id
    where i.issue_id = ${issueId}`;
}

/** Every match key of an issue's money that the payment seam finds, also through other issues. */
export async function findNamesAtSeam(
  sql: Queryable,
  issue: Pick<IssueRow, "account_key" | "subject_key">,
): Promise<readonly string[]> {
  const [row] = await sql<[{ names: string[] }]>`select names_of_settlement(0, ${moneyKeyOf(issue)}) as names`;
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

/** `isNew`: something was stored or recorded. `isBack`: the issue had ended, and is open again. */
interface EvidenceOutcome {
  readonly isNew: boolean;
  readonly isBack: boolean;
}

/**
 * Stores a later assertion up to the limit, and a repeated one only once. Beyond the limit it still records that
 * another amount or account was asserted.
 */
export async function addFurtherEvidence(
  sql: Transaction,
  issueId: number,
  evidence: FurtherEvidence,
): Promise<EvidenceOutcome> {
  const { said, learnedFrom, amountMinor, currency, account } = evidence;
  await sql`
    update issues i set
      money_names = case when cardinality(named.names) <= ${PROVIDER_LIMITS.moneyNames} then named.names else i.money_names end,
      said_differently = i.said_differently or cardinality(named.names) > ${PROVIDER_LIMITS.moneyNames}
    from issues known, lateral (
      select array_agg(distinct name order by name) as names
      from unnest(known.money_names || names_of_money(known.config_id,
        (select p from provider_payments p where intent_id = known.intent_id), ${account}, known.subject_key)) as name
    ) named
    where i.issue_id = ${issueId} and known.issue_id = i.issue_id and named.names <> i.money_names`;
  const differs = await sql`
    update issues set said_differently = true
    where issue_id = ${issueId} and not said_differently
      and (amount_minor, currency) is distinct from (${amountMinor}::bigint, ${currency}::text)`;
  const [seen] = await sql<{ is_back: boolean }[]>`
    update issues i set last_seen_at = now(), source = 'provider',
      status = case when i.status <> 'ended' then i.status when i.assignee_id is null then 'open' else 'assigned' end,
      resolved_at = case when i.status <> 'ended' then i.resolved_at end,
      reason = case when i.status <> 'ended' then i.reason end
    from (select issue_id, status from issues where issue_id = ${issueId} for update) before
    where i.issue_id = before.issue_id returning before.status = 'ended' as is_back`;
  const kept = await sql`
    update issues set evidence = jsonb_set(evidence, '{further}',
      coalesce(evidence -> 'further', '[]') || jsonb_build_array(jsonb_build_object(
        'at', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'learned_from', ${learnedFrom}::text, 'said', ${said}::text,
        'same_amount', (amount_minor, currency) is not distinct from (${amountMinor}::bigint, ${currency}::text))))
    where issue_id = ${issueId} and coalesce(evidence ->> 'said', '') <> ${said}
      and not coalesce(evidence -> 'further', '[]') @> jsonb_build_array(jsonb_build_object('said', ${said}::text))
      and jsonb_array_length(coalesce(evidence -> 'further', '[]')) < ${PROVIDER_LIMITS.furtherEvidence}`;
  return { isNew: differs.count + kept.count > 0, isBack: seen?.is_back === true };
}

/** The money's newest issue of one of these kinds that no person has decided yet, or that a person has closed. */
export async function findIssueOfMoney(
  sql: Transaction,
  key: { readonly configId: number; readonly kinds: readonly IssueKind[]; readonly moneyName: string },
): Promise<(Pick<Resolution, "issueId" | "kind" | "intentId"> & { readonly isClosed: boolean }) | undefined> {
  const [row] = await sql<(Pick<IssueRow, "issue_id" | "kind" | "intent_id"> & { readonly is_closed: boolean })[]>`
    select issue_id, kind, intent_id, status = 'closed' as is_closed from issues
    where account_key = ${providerAccountKey(key.configId)} and kind = any(${[...key.kinds]}::text[])
      and subject_key = ${key.moneyName} and status <> 'attributed' and superseded_by is null
    order by issue_id desc limit 1`;
  if (row === undefined) return undefined;
  return { issueId: row.issue_id, kind: row.kind, intentId: row.intent_id, isClosed: row.is_closed };
}

/** The newest open issue of money that names the intent. */
export async function findOpenIssueOf(
  sql: Queryable,
  intentId: number,
): Promise<{ readonly issueId: number; readonly kind: IssueKind } | undefined> {
  const [row] = await sql<{ issue_id: number; kind: IssueKind }[]>`
    select issue_id, kind from issues
    where intent_id = ${intentId} and status in ('open', 'assigned') and money_names <> '{}'
    order by issue_id desc limit 1`;
  return row === undefined ? undefined : { issueId: row.issue_id, kind: row.kind };
}

/**
 * Stores the request to the payment seam; false when the same money pays, or is about to pay, an order by another
 * issue. The caller has locked the money and the issue, and has checked that the issue is open and has no attribution.
 */
export async function startAttribution(sql: Transaction, issueId: number, attribution: Attribution): Promise<boolean> {
  const stored: Attribution = { ...attribution, requestId: currentRequestId() };
  const started = await sql`
    update issues i set attribution = ${sql.json(stored as unknown as Json)}, attributed_since = now()
    where i.issue_id = ${issueId} and not exists (
      select 1 from issues o
      where o.issue_id <> i.issue_id
        and o.money_names && i.money_names
        and (o.status = 'attributed' or o.attribution is not null))`;
  return started.count === 1;
}

/** Removes the attribution after a final refusal of the seam, so that the issue is as before. */
export async function clearAttribution(sql: Transaction, issueId: number): Promise<void> {
  await sql`
    update issues set attribution = null, attributed_since = null where issue_id = ${issueId}`;
}

/** Up to `limit` issues after `afterId`, by id, whose attribution is so old that its process must have ended. */
export async function listInterruptedAttributions(
  sql: Queryable,
  page: { readonly olderThanMs: number; readonly afterId: number; readonly limit: number },
): Promise<readonly (IssueKey & Pick<Attribution, "requestId">)[]> {
  const rows = await sql<{ organization_id: number; issue_id: number; request_id: string | null }[]>`
    select organization_id, issue_id, attribution ->> 'requestId' as request_id from issues
    where attribution is not null and attributed_since < now() - ${page.olderThanMs}::float8 * interval '1 ms'
      and issue_id > ${page.afterId}
    order by issue_id limit ${page.limit}`;
  return rows.map(({ organization_id: organizationId, issue_id: issueId, request_id }) => {
    return { organizationId, issueId, requestId: request_id ?? undefined };
  });
}

/**
 * Closes up to `limit` issues whose money has settled its intent meanwhile: the cashier has corrected the order and
 * attested it.
 */
export async function closeSettledIssues(
  sql: Transaction,
  limit: number,
): Promise<readonly Pick<IssueRow, "issue_id" | "organization_id" | "kind" | "reason" | "transaction_id">[]> {
  return await sql<Pick<IssueRow, "issue_id" | "organization_id" | "kind" | "reason" | "transaction_id">[]>`
    update issues i set status = 'closed', resolved_at = now(), transaction_id = t.transaction_id,
      reason = 'The cashier has settled this money since.'
    from transactions t
    where i.issue_id in (
        select o.issue_id from issues o
        join transactions paid on paid.intent_id = o.intent_id and paid.reference = o.provider_reference
        where o.kind = 'settlement_refused' and o.status in ('open', 'assigned') and o.attribution is null
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
