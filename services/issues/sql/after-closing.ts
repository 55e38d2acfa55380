/** Raises issues for callbacks that change a closed period. Runs do so for statements (services/reconciliation/sql/run-late.ts). */
import type { Transaction } from "../../db/pool.ts";
import { type RaisedIssue, raiseIssues } from "./raise.ts";

/**
 * Raises an issue `after_closing` when a closing covers the day of this issue: a callback has since asserted this amount for its
 * payment. The closing does not change. Returns undefined when no closing covers the day, or when the issue exists already.
 */
export async function raiseAfterClosing(
  sql: Transaction,
  asserted: { readonly issueId: number; readonly amountMinor: string | null; readonly currency: string | null },
): Promise<RaisedIssue | undefined> {
  const { issueId, amountMinor, currency } = asserted;
  const [raised] = await raiseIssues(
    sql,
    // Its source is `statement`: matching treats the other issues with a config as assertions of the provider.
    sql`
      select i.organization_id, i.account_key, i.station_id, 'after_closing', 'closed:' || i.kind || ':' || i.subject_key, 'paid',
        'payment', ${amountMinor}::bigint, ${currency}::text, 'statement', i.config_id, a.account_id, null::bigint, null::bigint,
        i.provider_reference, jsonb_build_object('statement', jsonb_build_object('lineIds', '[]'::jsonb, 'differences', '[]'::jsonb,
          'facts', jsonb_build_object('what', i.kind, 'closings', string_agg(c.closing_id::text, ' ' order by c.closing_id)))),
        false, '', null::bigint
      from issues i join statement_accounts a on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
        join period_closings c on c.account_id = a.account_id and issue_day(i, a.time_zone) between c.from_date and c.to_date
      where i.issue_id = ${issueId} and i.kind <> 'after_closing'
      group by i.issue_id, a.account_id`,
  );
  return raised?.outcome === "seen" ? undefined : raised;
}
