/** The comments of people on an issue, and its steps in the audit log. */
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { ProviderActor } from "../../db/provider-audit-log.ts";
import type { IssueKey } from "./issues.ts";

export interface CommentRow {
  readonly comment_id: number;
  readonly author_id: number;
  readonly author_name: string;
  readonly text: string;
  readonly created_at: Date;
}

export async function countComments(sql: Transaction, issueId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::int as count from issue_comments where issue_id = ${issueId}`;
  return row.count;
}

export async function commentIssue(
  sql: Transaction,
  comment: IssueKey & { readonly authorId: number; readonly authorName: string; readonly text: string },
): Promise<CommentRow> {
  const { organizationId, issueId, authorId, authorName, text } = comment;
  const [row] = await sql<[CommentRow]>`
    insert into issue_comments (organization_id, issue_id, author_id, author_name, text)
    values (${organizationId}, ${issueId}, ${authorId}, ${authorName}, ${text})
    returning comment_id, author_id, author_name, text, created_at`;
  return row;
}

/** The oldest first. */
export async function listComments(sql: Queryable, { organizationId, issueId }: IssueKey): Promise<CommentRow[]> {
  return sql<CommentRow[]>`
    select comment_id, author_id, author_name, text, created_at from issue_comments
    where organization_id = ${organizationId} and issue_id = ${issueId} order by comment_id`;
}

interface StepRow {
  readonly event_id: number;
  readonly at: Date;
  readonly actor: ProviderActor;
  readonly action: string;
  readonly data: Record<string, unknown>;
}

/** The newest `limit` entries of the audit log about the issue, the oldest of them first. */
export async function listSteps(
  sql: Queryable,
  { organizationId, issueId, limit }: IssueKey & { readonly limit: number },
): Promise<StepRow[]> {
  const rows = await sql<StepRow[]>`
    select event_id, at, jsonb_build_object('kind', actor_role, 'id', actor_id, 'name', actor_name) as actor, action, data
    from provider_events
    where organization_id = ${organizationId} and subject_kind in ('issue', 'provider_issue') and subject_id = ${issueId}
    order by event_id desc limit ${limit}`;
  return rows.toReversed();
}

/** Earlier evidence of an issue, the oldest first. */
export async function findPriorEvidence(sql: Queryable, issueId: number): Promise<Record<string, unknown>[]> {
  const [row] = await sql<{ prior_evidence: Record<string, unknown>[] }[]>`
    select prior_evidence from issues where issue_id = ${issueId}`;
  return row?.prior_evidence ?? [];
}
