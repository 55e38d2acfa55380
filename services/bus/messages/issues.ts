/** Issues: payments that a provider asserts and that do not fit. Amounts are minor units; every operation needs `reconciliation.manage`. */
import { z } from "zod";
import { AMOUNT_MINOR_PATTERN, BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";

const id = z.int().positive();
const amountMinor = z.string().regex(AMOUNT_MINOR_PATTERN);

/** What does not fit; an operator acts by the kind (contract, "Rules" 7). */
export const ISSUE_KINDS = [
  /** Money for a payment that was never registered, or a signed callback that cannot be read. */
  "unmatched_money",
  "amount_mismatch",
  "currency_mismatch",
  "account_mismatch",
  /** Money of another payment, money without a provider reference, or an event id that came with another body before. */
  "reference_mismatch",
  /** Money after the intent was cancelled, expired or failed. */
  "late_money",
  /** A second payment for an intent that is paid, or money that has paid another order. */
  "duplicate_money",
  /** The provider's money fits the intent, and the order no longer does: the payment seam refused. */
  "settlement_refused",
] as const;

/** Why an issue cannot be resolved as it was asked: the `reason` of a `conflict`. */
export const ISSUE_CONFLICTS = [
  /** Resolved already: by another person, in another way, or for another reason. */
  "issue_attributed",
  "issue_closed",
  /** An attribution of it is at the payment seam. */
  "attribution_under_way",
  /** How much the money is cannot be read from what the provider has sent. */
  "amount_unknown",
  /** The provider has asserted different amounts, or too many accounts. */
  "amount_contradicted",
  /** The money is not what the order costs. */
  "amount_differs",
  /** The provider has given the money no reference. */
  "money_unnamed",
  /** The money has paid, pays, or was closed as dealt with, by the payment itself or by another issue. */
  "money_has_paid",
  "money_attributed",
  "money_closed",
  /** The money may still settle its collection. */
  "money_may_settle",
  "order_not_open",
  "order_being_collected",
  /** Play money and a real order, or the reverse; the account of another filial. */
  "other_mode",
  "other_filial",
] as const;

const said = z.string();
/** What of a payment was registered, or what the provider asserts. What it leaves out is empty, or null. */
const paymentFacts = {
  reference: z.string(),
  providerReference: z.string(),
  account: z.string(),
  amountMinor: amountMinor.nullable(),
  currency: z.string().nullable(),
};
/** Never a secret. Which parts are present depends on how the issue was raised. */
export const issueEvidenceSchema = z.object({
  /** The callback's event type, or how the provider was asked. */
  learnedFrom: z.string().optional(),
  /** What the provider asserts, as far as it can be read, and its text. */
  asserted: z.object(paymentFacts).optional(),
  said: said.optional(),
  /** What was registered when the payment was asked for; null where the money names no payment. */
  registered: z.object({ ...paymentFacts, paidReference: z.string().nullable() }).nullish(),
  /** What the intent's station has answered to the confirmation. */
  station: z.object({ code: z.string(), status: z.string().nullable() }).optional(),
  /** What the provider has asserted about this money since. */
  further: z
    .array(z.looseObject({ at: z.string(), learned_from: z.string(), said, same_amount: z.boolean() }))
    .optional(),
});
export type IssueEvidence = z.infer<typeof issueEvidenceSchema>;

export const issueSchema = z.object({
  issueId: id,
  kind: z.enum(ISSUE_KINDS),
  status: z.enum(["open", "attributed", "closed"]),
  configId: id,
  stationId: id.nullable(),
  intentId: id.nullable(),
  orderId: id.nullable(),
  amountMinor: amountMinor.nullable(),
  currency: z.string().nullable(),
  providerReference: z.string(),
  evidence: issueEvidenceSchema,
  openedAtMs: z.number(),
  resolvedAtMs: z.number().nullable(),
  resolvedBy: z.int().nullable(),
  reason: z.string().nullable(),
  transactionId: id.nullable(),
});
export type Issue = z.infer<typeof issueSchema>;

/** Newest first; `beforeId` continues a list. */
export const listIssues = defineOperation(
  "providers.listIssues",
  "repeatable",
  z.object({
    caller,
    status: z.enum(["open", "attributed", "closed"]).optional(),
    beforeId: id.optional(),
    limit: z.int().min(1).max(BOUNDS.listed),
  }),
  z.object({ issues: z.array(issueSchema), hasMore: z.boolean() }),
);
/**
 * The money pays this order after all, through the payment seam; a refusal of the seam leaves the issue open. Refuses with
 * `conflict` and a reason of `ISSUE_CONFLICTS` what cannot be. The same person with the same order and reason again gets
 * the same answer.
 */
export const attributeIssue = defineOperation(
  "providers.attributeIssue",
  "repeatable",
  z.object({ caller, issueId: id, orderId: id, reason: z.string() }),
  z.object({ issue: issueSchema }),
);
/**
 * Resolved outside, for example paid back; the reason stays, and the money pays nothing any more, whatever is asserted later.
 * Repeated and refused as `attributeIssue`.
 */
export const closeIssue = defineOperation(
  "providers.closeIssue",
  "repeatable",
  z.object({ caller, issueId: id, reason: z.string() }),
  z.object({ issue: issueSchema }),
);
