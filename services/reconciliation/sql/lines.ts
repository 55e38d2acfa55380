/** Stored lines and malformed rows. Each query is confined to an organization. */
import type { LineFilter, StatementLine } from "../../bus/messages/statement-lines.ts";
import type { Fragment, Queryable } from "../../db/pool.ts";
import { LINE_LIMITS } from "../limits.ts";

export interface LineRow {
  readonly line_id: number;
  readonly account_id: number;
  readonly kind: StatementLine["kind"];
  readonly provider_type: string;
  readonly amount_minor: string;
  readonly currency: string;
  readonly fee_minor: string | null;
  readonly net_minor: string | null;
  readonly tip_minor: string | null;
  readonly booked_on: string;
  readonly value_on: string | null;
  readonly occurred_at: Date | null;
  readonly provider_reference: string;
  readonly payment_reference: string;
  readonly merchant_reference: string;
  readonly payout_reference: string;
  readonly terminal: string;
  readonly account: string;
  readonly text: string;
  readonly details: Readonly<Record<string, string>>;
  readonly sources: readonly { readonly importId: number; readonly position: number }[];
  readonly outcome: StatementLine["outcome"];
  readonly outcome_reason: string | null;
  readonly issue_id: number | null;
  readonly match_id: number | null;
}

/** Amounts as text, because an int8 may be larger than a number holds exactly. The sources of a line are found before they are ordered. */
const columns = (sql: Queryable) => sql`
  l.line_id, l.account_id, l.kind, l.provider_type, l.amount_minor::text as amount_minor, l.currency,
  l.fee_minor::text as fee_minor, l.net_minor::text as net_minor, l.tip_minor::text as tip_minor,
  l.booked_on::text as booked_on, l.value_on::text as value_on, l.occurred_at, l.provider_reference, l.payment_reference,
  l.merchant_reference, l.payout_reference, l.terminal, l.account, l.text, l.details,
  (select coalesce(jsonb_agg(jsonb_build_object('importId', import_id, 'position', position) order by import_id desc, position), '[]')
    from (select * from (select s.import_id, s.position from statement_line_sources s where s.line_id = l.line_id offset 0) each
      order by import_id desc, position limit ${LINE_LIMITS.sources}) newest) as sources,
  case when m.match_id is not null then 'matched' else o.outcome end as outcome,
  case when m.match_id is null then o.reason end as outcome_reason,
  case when m.match_id is null then o.issue_id end as issue_id, m.match_id`;

const judged = (sql: Queryable) => sql`
  left join match_lines m on m.line_id = l.line_id left join line_outcomes o on o.line_id = l.line_id`;

/** The lines to which the other filters apply. A reference is always searched by its index, whatever the planner expects. */
const lines = (sql: Queryable, { reference }: LineFilter): Fragment =>
  reference === undefined
    ? sql`statement_lines l`
    : sql`(
      ${lineIdsOf(sql, sql`provider_reference`, reference)} union ${lineIdsOf(sql, sql`payment_reference`, reference)}
      union ${lineIdsOf(sql, sql`merchant_reference`, reference)} union ${lineIdsOf(sql, sql`payout_reference`, reference)}
    ) named cross join lateral (select * from statement_lines n where n.line_id = named.line_id offset 0) l`;

const lineIdsOf = (sql: Queryable, column: Fragment, reference: string): Fragment =>
  sql`select line_id from statement_lines where ${column} = ${reference} and ${column} <> ''`;

const filtered = (sql: Queryable, { kind, currency, leastMinor, mostMinor }: LineFilter): Fragment => sql`
  (${kind ?? null}::text is null or l.kind = ${kind ?? null})
  and (${currency ?? null}::text is null or l.currency = ${currency ?? null})
  and (${leastMinor ?? null}::bigint is null or l.amount_minor >= ${leastMinor ?? null}::bigint)
  and (${mostMinor ?? null}::bigint is null or l.amount_minor <= ${mostMinor ?? null}::bigint)`;

/** By day and id, as an index has them. */
export async function listLines(
  sql: Queryable,
  page: {
    readonly accountId: number;
    readonly fromDate: string | undefined;
    readonly toDate: string | undefined;
    readonly filter: LineFilter;
    readonly after: { readonly bookedOn: string; readonly lineId: number } | undefined;
    readonly limit: number;
  },
): Promise<readonly LineRow[]> {
  const { fromDate = null, toDate = null, after } = page;
  return await sql<LineRow[]>`
    select ${columns(sql)} from ${lines(sql, page.filter)} ${judged(sql)}
    where l.account_id = ${page.accountId} and l.booked_on between coalesce(${fromDate}::date, '-infinity')
        and coalesce(${toDate}::date, 'infinity')
      and (l.booked_on, l.line_id) > (coalesce(${after?.bookedOn ?? null}::date, '-infinity'), ${after?.lineId ?? 0}::bigint)
      and ${filtered(sql, page.filter)}
    order by l.booked_on, l.line_id limit ${page.limit}`;
}

/** In the order of the file. */
export async function listImportLines(
  sql: Queryable,
  page: {
    readonly importId: number;
    readonly filter: LineFilter;
    readonly sincePosition: number;
    readonly limit: number;
  },
): Promise<readonly (LineRow & { readonly position: number })[]> {
  return await sql<(LineRow & { position: number })[]>`
    select f.position, ${columns(sql)}
    from ${lines(sql, page.filter)} join statement_line_sources f on f.line_id = l.line_id ${judged(sql)}
    where f.import_id = ${page.importId} and f.position > ${page.sincePosition} and ${filtered(sql, page.filter)}
    order by f.position limit ${page.limit}`;
}

export interface MalformedRowRow {
  readonly import_id: number;
  readonly position: number;
  readonly column_name: string;
  readonly reason: string;
  readonly raw: string;
}

/** By import and position. */
export async function listMalformedRows(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly accountId: number | undefined;
    readonly importId: number | undefined;
    readonly after: { readonly importId: number; readonly position: number };
    readonly limit: number;
  },
): Promise<readonly MalformedRowRow[]> {
  const { organizationId, accountId = null, importId = null, after } = page;
  return await sql<MalformedRowRow[]>`
    select m.import_id, m.position, m.column_name, m.reason, m.raw
    from statement_imports i join statement_malformed m using (import_id)
    where i.organization_id = ${organizationId} and (${accountId}::bigint is null or i.account_id = ${accountId})
      and (${importId}::bigint is null or i.import_id = ${importId}) and i.status in ('held', 'imported', 'importing')
      and (m.import_id, m.position) > (${after.importId}::bigint, ${after.position}::bigint)
    order by m.import_id, m.position limit ${page.limit}`;
}

/** Whether the organization has this import. */
export async function hasImport(
  sql: Queryable,
  key: { readonly organizationId: number; readonly importId: number },
): Promise<boolean> {
  const rows = await sql`
    select from statement_imports where organization_id = ${key.organizationId} and import_id = ${key.importId}`;
  return rows.count === 1;
}

/** Whether the organization has this account. */
export async function hasAccount(
  sql: Queryable,
  key: { readonly organizationId: number; readonly accountId: number },
): Promise<boolean> {
  const rows = await sql`
    select from statement_accounts where organization_id = ${key.organizationId} and account_id = ${key.accountId}`;
  return rows.count === 1;
}
