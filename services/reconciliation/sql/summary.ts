/** The values of statements and runs for the metrics. */
import type { Queryable } from "../../db/pool.ts";

interface StatementSummary {
  readonly lines: Readonly<Record<"matched" | "differs" | "rejected" | "not_run", number>>;
  readonly oldestWantedSeconds: number;
  readonly lagSeconds: number;
}

/** Lines booked within 30 days: what is older is history, and counting it would take longer each year. */
export async function summarizeStatements(sql: Queryable): Promise<StatementSummary> {
  const [row] = await sql<
    { matched: number; differs: number; rejected: number; not_run: number; wanted: number; lag: number }[]
  >`
    with recent as (
      select l.line_id from statement_accounts a join statement_lines l
        on l.account_id = a.account_id and l.booked_on > current_date - 30
    )
    select count(*) filter (where m.line_id is not null) as matched,
      count(*) filter (where o.outcome = 'differs' and m.line_id is null) as differs,
      count(*) filter (where o.outcome = 'rejected' and m.line_id is null) as rejected,
      count(*) filter (where o.line_id is null and m.line_id is null) as not_run,
      coalesce((select extract(epoch from clock_timestamp() - min(first_wanted_at)) from wanted_runs), 0)::float8 as wanted,
      coalesce((select max(extract(epoch from now() - newest)) from (
        select max(i.to_date) as newest from statement_imports i join statement_accounts a using (account_id)
        where i.status = 'imported' and i.ended_at > now() - interval '30 days'
        -- An account that is no longer used has no lag once its statements reach its last day.
        group by a.account_id having max(i.to_date) < coalesce(a.last_day, 'infinity')) each), 0)::float8 as lag
    from recent r left join match_lines m using (line_id) left join line_outcomes o using (line_id)`;
  const { matched = 0, differs = 0, rejected = 0, not_run = 0, wanted = 0, lag = 0 } = row ?? {};
  return { lines: { matched, differs, rejected, not_run }, oldestWantedSeconds: wanted, lagSeconds: lag };
}
