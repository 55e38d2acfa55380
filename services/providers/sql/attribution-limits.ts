/** The most that one person may attribute alone, as the organization has set it. */
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface LimitRow {
  readonly currency: string;
  readonly alone_up_to_minor: string;
  readonly changed_by: number;
  readonly changed_by_name: string;
  readonly changed_at: Date;
  readonly reason: string;
}

const columns = (sql: Queryable) => sql`
  currency, alone_up_to_minor::text as alone_up_to_minor, changed_by, changed_by_name, changed_at, reason`;

/** The organization's limits, in the order of the currencies. */
export async function listAttributionLimits(sql: Queryable, organizationId: number): Promise<readonly LimitRow[]> {
  return await sql<LimitRow[]>`
    select ${columns(sql)} from attribution_limits where organization_id = ${organizationId} order by currency`;
}

export async function findLimit(
  sql: Queryable,
  { organizationId, currency }: { readonly organizationId: number; readonly currency: string },
): Promise<LimitRow | undefined> {
  const [row] = await sql<LimitRow[]>`
    select ${columns(sql)} from attribution_limits where organization_id = ${organizationId} and currency = ${currency}`;
  return row;
}

/** The currencies of the organization's stations, in order. */
export async function listCurrencies(sql: Queryable, organizationId: number): Promise<readonly string[]> {
  const rows = await sql<{ currency: string }[]>`
    select distinct currency from stations where organization_id = ${organizationId} order by currency`;
  return rows.map(({ currency }) => currency);
}

/** Only one transaction at a time changes the limits of an organization. */
export async function lockLimits(sql: Transaction, organizationId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('attribution limits of ' || ${organizationId}::bigint, 0))`;
}

export async function setAttributionLimit(
  sql: Transaction,
  limit: {
    readonly organizationId: number;
    readonly currency: string;
    readonly aloneUpToMinor: string;
    readonly by: { readonly userId: number; readonly name: string };
    readonly reason: string;
  },
): Promise<LimitRow> {
  const { organizationId, currency, aloneUpToMinor, by, reason } = limit;
  const [row] = await sql<[LimitRow]>`
    insert into attribution_limits (organization_id, currency, alone_up_to_minor, changed_by, changed_by_name, reason)
    values (${organizationId}, ${currency}, ${aloneUpToMinor}, ${by.userId}, ${by.name}, ${reason})
    on conflict (organization_id, currency) do update set alone_up_to_minor = excluded.alone_up_to_minor,
      changed_by = excluded.changed_by, changed_by_name = excluded.changed_by_name, changed_at = now(), reason = excluded.reason
    returning ${columns(sql)}`;
  return row;
}

export async function removeLimit(
  sql: Transaction,
  { organizationId, currency }: { readonly organizationId: number; readonly currency: string },
): Promise<void> {
  await sql`delete from attribution_limits where organization_id = ${organizationId} and currency = ${currency}`;
}
