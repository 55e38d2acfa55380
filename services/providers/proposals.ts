/**
 * Attributions by two people: one proposes the order and the reason, another one confirms or rejects. A confirmed
 * proposal goes through the payment seam like any attribution (attributions.ts). A proposal is valid until the issue's
 * evidence or the order changes. Then it is refused at once, and `endProposals` ends it a moment later.
 */
import type * as bus from "../bus/messages/attribution-proposals.ts";
import { type Caller, personActor, requirePermission } from "../bus/messages/caller.ts";
import type { Handler, ReplyOf } from "../bus/operation.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import type { Database, Transaction } from "../db/pool.ts";
import { SYSTEM } from "../db/provider-audit-log.ts";
import { decide, issueConflict, requireUnattributed, requireUnresolved, toIssue } from "../issues/life-cycle.ts";
import { announceIssues, recordSteps } from "../issues/recording.ts";
import { type IssueKey, lockIssue } from "../issues/sql/issues.ts";
import {
  byOf,
  lockAttributable,
  readFinished,
  requestOf,
  requireFittingOrder,
  requireNoCollection,
  settle,
} from "./attributions.ts";
import type { ProvidersDeps } from "./deps.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import * as sql from "./sql/proposals.ts";

/** Refuses as `attributeIssue`, and with `conflict` when another proposal waits. */
export const proposeAttribution: Handler<ProvidersDeps, typeof bus.proposeAttribution> = async (deps, request) => {
  const { caller, issueId, orderId, reason } = request;
  requirePermission(caller, "reconciliation.manage");
  const key = { organizationId: caller.organizationId, issueId };
  const isMine = (last: sql.ProposalRow | undefined): boolean =>
    last?.proposed_by === caller.userId && last.order_id === orderId && last.reason === reason;
  const before = await readFinished(deps, key);
  const last = await sql.findLastProposal(deps.database, issueId);
  // The same request again, because its answer was lost. The proposal may have been confirmed meanwhile.
  if (last?.status === "confirmed" && isMine(last)) return { issue: toIssue(before) };
  requireUnresolved(before);
  await requireFittingOrder(deps, before, orderId);
  return await decide(deps.database, async (tx) => {
    const issue = await lockAttributable(deps, tx, before);
    const waiting = await sql.findLastProposal(tx, issueId);
    if (waiting?.status === "waiting" && waiting.end === null) {
      if (isMine(waiting)) return { issue: toIssue(issue) };
      const detail = `${waiting.proposed_by_name} has proposed order ${waiting.order_id}: confirm or reject that first.`;
      throw issueConflict("proposal_waiting", detail);
    }
    const isEnding = waiting?.status === "waiting";
    if (isEnding) await sql.decideProposal(tx, waiting.proposal_id, { status: "ended", by: null, reason: waiting.end });
    const proposalId = await sql.insertProposal(tx, { ...key, orderId, reason, by: caller });
    const after = existing(await lockIssue(tx, key));
    if (isEnding) await recordEnds(tx, [waiting]);
    const data = { kind: issue.kind, proposal_id: proposalId, order_id: orderId, reason };
    await recordSteps(tx, [{ issue, actor: personActor(caller), action: "attribution_proposed", data }]);
    await announceIssues(tx, "issues_changed", [issue]);
    return { issue: toIssue(after) };
  });
};

/** Refuses as `attributeIssue`, and with `not_found` and `conflict` about the proposal. */
export const confirmAttribution: Handler<ProvidersDeps, typeof bus.confirmAttribution> = async (deps, request) => {
  const { caller, issueId, proposalId } = request;
  requirePermission(caller, "reconciliation.manage");
  const named = { organizationId: caller.organizationId, issueId, proposalId };
  const before = await readFinished(deps, named);
  const proposal = requireProposal(await sql.findProposal(deps.database, named));
  if (proposal.status === "confirmed" && proposal.decided_by === caller.userId) return { issue: toIssue(before) };
  requireUnresolved(before);
  requireWaiting(proposal);
  requireOther(proposal, caller);
  const order = await requireFittingOrder(deps, before, proposal.order_id);
  await requireNoCollection(deps, before, order);
  const { reason, proposed_by: by, proposed_by_name: byName } = proposal;
  const attribution = { ...requestOf(before, order), reason, by: byOf(caller), proposal: { proposalId, by, byName } };
  const issue = await settle(deps, before, attribution, async (tx) => {
    requireWaiting(requireProposal(await sql.findProposal(tx, named)));
  });
  return { issue };
};

/** Refuses with `permission_denied`, `not_found`, `invalid_request`, `conflict`. */
export const rejectAttribution: Handler<ProvidersDeps, typeof bus.rejectAttribution> = async (deps, request) => {
  const { caller, issueId, proposalId, reason } = request;
  requirePermission(caller, "reconciliation.manage");
  const named = { organizationId: caller.organizationId, issueId, proposalId };
  return await decideWaiting(deps, { caller, named, status: "rejected", reason, require: requireOther });
};

/** Only the person who has proposed may withdraw. Refuses with `permission_denied`, `not_found`, `conflict`. */
export const withdrawAttribution: Handler<ProvidersDeps, typeof bus.withdrawAttribution> = async (deps, request) => {
  const { caller, issueId, proposalId } = request;
  requirePermission(caller, "reconciliation.manage");
  const named = { organizationId: caller.organizationId, issueId, proposalId };
  return await decideWaiting(deps, { caller, named, status: "withdrawn", reason: null, require: requireOwn });
};

async function decideWaiting(
  deps: ProvidersDeps,
  decision: {
    readonly caller: Caller;
    readonly named: IssueKey & { readonly proposalId: number };
    readonly status: "rejected" | "withdrawn";
    readonly reason: string | null;
    readonly require: (proposal: sql.ProposalRow, caller: Caller) => void;
  },
): Promise<ReplyOf<typeof bus.rejectAttribution>> {
  const { caller, named, status, reason } = decision;
  await readFinished(deps, named);
  return await decide(deps.database, async (tx) => {
    const issue = existing(await lockIssue(tx, named));
    const proposal = requireProposal(await sql.findProposal(tx, named));
    const { decided_by: by, decision_reason: storedReason } = proposal;
    if (proposal.status === status && by === caller.userId && storedReason === reason) return { issue: toIssue(issue) };
    requireUnresolved(issue);
    requireUnattributed(issue);
    requireWaiting(proposal);
    decision.require(proposal, caller);
    await sql.decideProposal(tx, named.proposalId, { status, by: caller.userId, reason });
    const { proposal_id, order_id, proposed_by } = proposal;
    const data = { kind: issue.kind, proposal_id, order_id, proposed_by, ...(reason === null ? {} : { reason }) };
    await recordSteps(tx, [{ issue, actor: personActor(caller), action: `attribution_${status}`, data }]);
    await announceIssues(tx, "issues_changed", [issue]);
    return { issue: toIssue({ ...issue, proposal: null }) };
  });
}

/** Ends proposals that are no longer valid, with the reason in the audit log. */
export async function endProposals(database: Database): Promise<void> {
  await database.begin(async (tx) => {
    const ended = await sql.endProposals(tx, PROVIDER_LIMITS.proposalsPerTurn);
    await recordEnds(tx, ended);
    await announceIssues(tx, "issues_changed", ended);
  });
}

async function recordEnds(tx: Transaction, ended: readonly sql.ProposalRow[]): Promise<void> {
  const steps = ended.map(({ issue_id, organization_id, proposal_id, order_id, end, decision_reason }) => ({
    issue: { issue_id, organization_id },
    actor: SYSTEM,
    action: "attribution_ended" as const,
    data: { proposal_id, order_id, reason: decision_reason ?? end },
  }));
  await recordSteps(tx, steps);
}

function requireProposal(proposal: sql.ProposalRow | undefined): sql.ProposalRow {
  if (proposal !== undefined) return proposal;
  throw new RefusedError({ code: "not_found", detail: "This issue has no such proposal." });
}

function requireWaiting({ status, end }: sql.ProposalRow): void {
  if (status === "waiting" && end === null) return;
  const why = status === "waiting" ? end : `The proposal was ${status}.`;
  throw issueConflict("proposal_ended", `This proposal does not wait any more. ${why}`);
}

function requireOther({ proposed_by: by }: sql.ProposalRow, { userId }: Caller): void {
  if (by !== userId) return;
  throw issueConflict("own_proposal", "You have proposed this: another person confirms or rejects it.");
}

function requireOwn({ proposed_by: by, proposed_by_name: name }: sql.ProposalRow, { userId }: Caller): void {
  if (by === userId) return;
  throw issueConflict("proposed_by_another", `${name} has proposed this: reject it instead.`);
}
