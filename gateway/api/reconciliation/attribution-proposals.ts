/** Attributions by two people: one person proposes, and another confirms or rejects. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/attribution-proposals.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { idSchema, reasonSchema } from "../../http/shared-schemas.ts";
import { issueJson } from "./issue-json.ts";
import { attributeIssueBodySchema, ISSUE_CONFLICT_DESCRIPTION, issueReply } from "./issues.ts";

const proposalId = idSchema.meta({ description: "The proposal that the person has seen in the issue." });
const decideBodySchema = z
  .strictObject({ proposal_id: proposalId })
  .meta({ id: "DecideAttribution", examples: [{ proposal_id: 42 }] });
const rejectBodySchema = z
  .strictObject({ proposal_id: proposalId, reason: reasonSchema })
  .meta({ id: "RejectAttribution", examples: [{ proposal_id: 42, reason: "That order was paid in cash." }] });

/** Errors: `not_found`, `conflict` with a reason. */
const proposeAttribution: SessionHandler<z.infer<typeof attributeIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, issueId: context.id("issue_id"), orderId: body.order_id, reason: body.reason };
  return ok(issueJson((await deps.bus.call(bus.proposeAttribution, request)).issue, deps.nowMs()));
};

/** Errors: `not_found`, `conflict` with a reason, and those of the payment seam. */
const confirmAttribution: SessionHandler<z.infer<typeof decideBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, issueId: context.id("issue_id"), proposalId: body.proposal_id };
  return ok(issueJson((await deps.bus.call(bus.confirmAttribution, request)).issue, deps.nowMs()));
};

/** Errors: `not_found`, `conflict` with a reason. */
const rejectAttribution: SessionHandler<z.infer<typeof rejectBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = {
    caller,
    issueId: context.id("issue_id"),
    proposalId: body.proposal_id,
    reason: body.reason,
  };
  return ok(issueJson((await deps.bus.call(bus.rejectAttribution, request)).issue, deps.nowMs()));
};

/** Errors: `not_found`, `conflict` with a reason. */
const withdrawAttribution: SessionHandler<z.infer<typeof decideBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, issueId: context.id("issue_id"), proposalId: body.proposal_id };
  return ok(issueJson((await deps.bus.call(bus.withdrawAttribution, request)).issue, deps.nowMs()));
};

const proposal = "/api/reconciliation/v1/issues/{issue_id}/proposal/" as const;
const shared = { method: "POST", replies: issueReply } as const;

export const attributionProposalRoutes = [
  reconciliationRoute({
    ...shared,
    path: proposal,
    operation: "proposeAttribution",
    summary: "Propose to pay an order with an issue's payment",
    description: `For a payment above the amount that one person may attribute alone. The proposal waits in the issue's \`proposal\` for another person. It ends when the issue's evidence changes, or when the order is paid, voided or changed. ${ISSUE_CONFLICT_DESCRIPTION}`,
    body: attributeIssueBodySchema,
    errors: ["not_found", "conflict"],
    handler: proposeAttribution,
  }),
  reconciliationRoute({
    ...shared,
    path: `${proposal}confirm/`,
    operation: "confirmAttribution",
    summary: "Confirm another person's proposal",
    description: `Pays the order with the issue's payment through the payment seam, in the name of the person who confirms. ${ISSUE_CONFLICT_DESCRIPTION}`,
    body: decideBodySchema,
    errors: ["not_found", "conflict", "order_unknown", "order_already_paid", "order_changed", "order_voided"],
    handler: confirmAttribution,
  }),
  reconciliationRoute({
    ...shared,
    path: `${proposal}reject/`,
    operation: "rejectAttribution",
    summary: "Reject another person's proposal",
    description: `The issue stays open, and a new proposal can be made. ${ISSUE_CONFLICT_DESCRIPTION}`,
    body: rejectBodySchema,
    errors: ["not_found", "conflict"],
    handler: rejectAttribution,
  }),
  reconciliationRoute({
    ...shared,
    path: `${proposal}withdraw/`,
    operation: "withdrawAttribution",
    summary: "Withdraw your proposal",
    description: `Only the person who made the proposal can withdraw it. ${ISSUE_CONFLICT_DESCRIPTION}`,
    body: decideBodySchema,
    errors: ["not_found", "conflict"],
    handler: withdrawAttribution,
  }),
];
