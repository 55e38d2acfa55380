/** Counts and sums of issues, and the people who may decide them. */
import type { ISSUE_VIEWS } from "../../bus/messages/issue-overview.ts";
import type { Queryable } from "../../db/pool.ts";
import { type Filtered, ofFilter } from "./issues.ts";

interface IssueSumRow {
  readonly currency: string | null;
  readonly count: number;
  readonly amount_minor: string | null;
}

/** By currency; issues without an amount count under no currency. */
export async function sumIssues(sql: Queryable, filtered: Filtered): Promise<IssueSumRow[]> {
  return await sql<IssueSumRow[]>`
    select case when amount_minor is null then null else currency end as currency, count(*)::int as count,
      sum(amount_minor)::text as amount_minor
    from issues where ${ofFilter(sql, filtered)}
    group by 1 order by 1 nulls last`;
}

export async function countViews(
  sql: Queryable,
  { organizationId, staleAfterDays }: { readonly organizationId: number; readonly staleAfterDays: number },
): Promise<Record<(typeof ISSUE_VIEWS)[number], number>> {
  const [row] = await sql<[Record<(typeof ISSUE_VIEWS)[number], number>]>`
    select count(*)::int as all_open,
      count(*) filter (where status = 'open')::int as needs_attention,
      count(*) filter (where status = 'assigned')::int as waiting,
      count(*) filter (where kind = 'missing_in_statement')::int as missing,
      count(*) filter (where opened_at <= now() - ${staleAfterDays}::int * interval '1 day')::int as stale
    from issues where organization_id = ${organizationId} and status in ('open', 'assigned')`;
  return row;
}

export async function listOperators(
  sql: Queryable,
  { organizationId, limit }: { readonly organizationId: number; readonly limit: number },
): Promise<{ readonly user_id: number; readonly name: string }[]> {
  return await sql<{ user_id: number; name: string }[]>`
    select user_id, name from users
    where organization_id = ${organizationId} and role = 'reconciliation_operator' and status = 'active'
    order by name, user_id limit ${limit}`;
}
