/** Ends issues whose cause is gone. */
import type { Fragment, Transaction } from "../../db/pool.ts";

/**
 * Ends the undecided issues of statements that the query names by `issue_id`, for example because their import was withdrawn
 * or a later run has explained them. What a person has decided stays, and so does an issue that a callback has raised too.
 * An ended issue returns when it is raised again (`raiseIssues`), with its assignee. The caller records and announces them
 * (`recordEnded`).
 */
export async function endIssues(
  sql: Transaction,
  { which, reason }: { readonly which: Fragment; readonly reason: string },
): Promise<readonly { readonly issue_id: number; readonly organization_id: number; readonly kind: string }[]> {
  // Selected first: with old statistics of a table, the planner would run this query again for each issue.
  await sql`create temporary table ending_issues on commit drop as select distinct issue_id from (${which}) named`;
  await sql`create unique index on ending_issues (issue_id)`;
  await sql`analyze ending_issues`;
  const ended = await sql<{ issue_id: number; organization_id: number; kind: string }[]>`
    update issues i set status = 'ended', resolved_at = now(), reason = ${reason}
    where i.issue_id in (
        select issue_id from issues join ending_issues using (issue_id)
        where status in ('open', 'assigned') and source = 'statement' and attribution is null
        order by issue_id for update of issues)
    returning i.issue_id, i.organization_id, i.kind`;
  await sql`drop table ending_issues`;
  return ended;
}
