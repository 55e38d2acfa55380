/** Proposals of attributions, as they are stored. The issue is locked before a proposal of it is written. */
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { IssueKey } from "../../issues/sql/issues.ts";

export interface ProposalRow {
  readonly proposal_id: number;
  readonly organization_id: number;
  readonly issue_id: number;
  readonly order_id: number;
  readonly reason: string;
  readonly proposed_by: number;
  readonly proposed_by_name: string;
  readonly status: "waiting" | "confirmed" | "rejected" | "withdrawn" | "ended";
  readonly decided_by: number | null;
  readonly decision_reason: string | null;
  /** Why a waiting proposal is no longer valid; null while it is valid. */
  readonly end: string | null;
}

const columns = (sql: Queryable) => sql`
  p.proposal_id, p.organization_id, p.issue_id, p.order_id, p.reason, p.proposed_by, p.proposed_by_name, p.status, p.decided_by,
  p.decision_reason, case when p.status = 'waiting' then why_proposal_ends(p, i) end as "end"`;

export async function findProposal(
  sql: Queryable,
  { organizationId, issueId, proposalId }: IssueKey & { readonly proposalId: number },
): Promise<ProposalRow | undefined> {
  const [row] = await sql<ProposalRow[]>`
    select ${columns(sql)} from attribution_proposals p join issues i using (issue_id)
    where p.organization_id = ${organizationId} and p.issue_id = ${issueId} and p.proposal_id = ${proposalId}`;
  return row;
}

/** The issue's newest proposal. */
export async function findLastProposal(sql: Queryable, issueId: number): Promise<ProposalRow | undefined> {
  const [row] = await sql<ProposalRow[]>`
    select ${columns(sql)} from attribution_proposals p join issues i using (issue_id)
    where p.issue_id = ${issueId} order by p.proposal_id desc limit 1`;
  return row;
}

/** Stores a proposal for the issue's present amount and evidence. */
export async function insertProposal(
  sql: Transaction,
  proposal: IssueKey & {
    readonly orderId: number;
    readonly reason: string;
    readonly by: { readonly userId: number; readonly name: string };
  },
): Promise<number> {
  const { organizationId, issueId, orderId, reason, by } = proposal;
  const [row] = await sql<[{ proposal_id: number }]>`
    insert into attribution_proposals (organization_id, issue_id, order_id, amount_minor, currency, evidence_hash, reason,
      proposed_by, proposed_by_name)
    select ${organizationId}, issue_id, ${orderId}, amount_minor, currency, evidence_hash, ${reason}, ${by.userId}, ${by.name}
    from issues where issue_id = ${issueId}
    returning proposal_id`;
  return row.proposal_id;
}

interface ProposalDecision {
  readonly status: Exclude<ProposalRow["status"], "waiting">;
  readonly by: number | null;
  readonly reason: string | null;
}

/** Decides the proposal if it is still waiting. */
export async function decideProposal(
  sql: Transaction,
  proposalId: number,
  { status, by, reason }: ProposalDecision,
): Promise<void> {
  await sql`
    update attribution_proposals set status = ${status}, decided_by = ${by}, decided_at = now(), decision_reason = ${reason}
    where proposal_id = ${proposalId} and status = 'waiting'`;
}

/**
 * Ends up to `limit` proposals that are no longer valid. Skips a proposal while another transaction has locked its issue, or
 * while the issue is at the payment seam: a later turn ends it.
 */
export async function endProposals(sql: Transaction, limit: number): Promise<readonly ProposalRow[]> {
  return await sql<ProposalRow[]>`
    with due as (
      select p.proposal_id, why_proposal_ends(p, i) as why from attribution_proposals p join issues i using (issue_id)
      where p.status = 'waiting' and i.attribution is null and why_proposal_ends(p, i) is not null
      order by p.issue_id limit ${limit} for update of i skip locked
    )
    update attribution_proposals p set status = 'ended', decided_at = now(), decision_reason = due.why
    from due where p.proposal_id = due.proposal_id and p.status = 'waiting'
    returning p.proposal_id, p.organization_id, p.issue_id, p.order_id, p.reason, p.proposed_by, p.proposed_by_name, p.status,
      p.decided_by, p.decision_reason, null as "end"`;
}
