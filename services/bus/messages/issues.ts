/**
 * Issues: the differences that provider callbacks and reconciliation runs find. Amounts are minor units; every
 * operation needs `reconciliation.manage`.
 *
 *   raised ──► open ◄──► assigned ──► closed, or attributed ──► superseded by a new issue, when its evidence changes
 *               ▲            │           │ undone by the same person
 *               └── ended ◄──┘ ◄─────────┘ (back to open or assigned)
 *
 * `ended`: its cause is gone. When the cause comes back, the issue opens again.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { malformedReasonSchema } from "../malformed-reasons.ts";
import { once, repeatable } from "../operation.ts";
import { pageBefore } from "../page.ts";
import { amountMinorSchema as amountMinor, signedMinorSchema as signedMinor } from "./amount.ts";
import { actorSchema, callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";
import { detailsSchema, reasonSchema as reason } from "./sentence.ts";

const id = z.int().positive();

/** Kinds of issues that a provider's callback, or its answer to a poll, can raise (contract, "Rules" 7). */
export const CALLBACK_ISSUE_KINDS = [
  /** A provider payment that was never registered, or a signed callback that cannot be read. */
  "unmatched_money",
  "amount_over",
  "amount_under",
  /** The amount of the payment cannot be read. */
  "amount_unknown",
  "currency_mismatch",
  "account_mismatch",
  /** A payment with another reference or without one, or an event id that came with another body before. */
  "reference_mismatch",
  /** A payment after the intent was cancelled, expired or failed. */
  "late_money",
  /** A second payment for a paid intent, or a provider payment that has paid another order. */
  "duplicate_money",
  /** The payment seam refused: the provider payment fits the intent, but the order has changed. */
  "settlement_refused",
] as const;

/** Kinds that only a reconciliation run can raise. A run raises most of the kinds above, too. */
export const STATEMENT_ISSUE_KINDS = [
  "missing_in_statement",
  "direction_mismatch",
  "status_mismatch",
  "ambiguous_match",
  "duplicate_in_statement",
  /**
   * Rows of two statements that overlap in part: the statements do not show whether the rows are one movement or
   * several.
   */
  "possible_duplicate",
  "date_out_of_window",
  "fee_mismatch",
  "refund_not_registered",
  "chargeback_not_registered",
  "wrong_station",
  "rounding",
  /** The guest has paid more than the order costs, and the statement calls the difference a tip. */
  "tip",
  "batch_total_mismatch",
  "malformed_line",
  /** A line or an issue for a period that was closed earlier. */
  "after_closing",
] as const;

/** All kinds. An operator decides by the kind what to do. */
export const ISSUE_KINDS = [...CALLBACK_ISSUE_KINDS, ...STATEMENT_ISSUE_KINDS] as const;
export type IssueKind = (typeof ISSUE_KINDS)[number];
export const ISSUE_STATUSES = ["open", "assigned", "attributed", "closed", "ended"] as const;
export type IssueStatus = (typeof ISSUE_STATUSES)[number];
export const ISSUE_SOURCES = ["provider", "statement"] as const;

/** Why the service refuses to resolve an issue as requested: the `reason` of a `conflict`. */
export const ISSUE_CONFLICTS = [
  /** The issue is resolved already: by another person, in another way, or for another reason. */
  "issue_attributed",
  "issue_closed",
  /** Its cause is gone. */
  "issue_ended",
  /** The evidence has changed, and a newer issue replaces this one. */
  "issue_superseded",
  /** The evidence has changed since the person has seen it: the person must check it again. */
  "evidence_changed",
  /** The person who requests the undo has not closed the issue. */
  "closed_by_another",
  "undo_too_late",
  /** The period of the issue was closed meanwhile. A closed period never opens again. */
  "period_closed",
  /** The issue has as many comments as it can have. */
  "too_many_comments",
  /** The payment seam works on an attribution of the issue. */
  "attribution_under_way",
  /** The provider's text has no amount that can be read. */
  "amount_unknown",
  /** The provider has asserted different amounts, or too many accounts. */
  "amount_contradicted",
  /** The amount of the provider payment is not the amount of the order. */
  "amount_differs",
  /** The provider payment has no reference. */
  "money_unnamed",
  /**
   * The provider payment has paid an order: by itself, or by the attribution of another issue. Or a person has closed
   * it.
   */
  "money_has_paid",
  "money_attributed",
  "money_closed",
  /** The provider payment may still settle its collection. */
  "money_may_settle",
  /** No order can be paid with this issue: it is not about a payment, or its line has no provider reference. */
  "not_attributable",
  /** The withdrawal of the file with its line is under way. */
  "import_withdrawing",
  /** A person has confirmed that the line is another payment. A person must reject that match first. */
  "line_confirmed",
  /** The amount is above what one person may attribute alone: the person can propose the attribution to another one. */
  "second_person_needed",
  /** Another proposal waits for a second person. */
  "proposal_waiting",
  /** The proposal was rejected or withdrawn, or its issue has changed. */
  "proposal_ended",
  /** The person who proposed an attribution cannot confirm or reject it. */
  "own_proposal",
  "proposed_by_another",
  "order_not_open",
  "order_being_collected",
  /** A test payment with a real order, or a real payment with a test order. */
  "other_mode",
  /** The account of the payment belongs to another filial. */
  "other_filial",
] as const;

/** The facts of a payment, as registered or as the provider asserts them. A fact that is missing is empty or null. */
const paymentFacts = {
  reference: z.string(),
  providerReference: z.string(),
  account: z.string(),
  amountMinor: amountMinor.nullable(),
  currency: z.string().nullable(),
};
/** The evidence of an issue, without secrets. Which parts are present depends on how the issue was raised. */
export const issueEvidenceSchema = z.object({
  /** The callback's event type, or how the service polled the provider. */
  learnedFrom: z.string().optional(),
  /** The facts that the provider asserts, as far as the service can read them. `said` is the provider's text. */
  asserted: z.object(paymentFacts).optional(),
  said: z.string().optional(),
  /**
   * What the service registered when it requested the payment; null where the provider payment names no registered one.
   */
  registered: z.object({ ...paymentFacts, paidReference: z.string().nullable() }).nullish(),
  /** The answer of the intent's station to the confirmation. */
  station: z.object({ code: z.string(), status: z.string().nullable() }).optional(),
  /** What the provider has asserted about this payment since. */
  further: z
    .array(z.looseObject({ at: z.string(), learned_from: z.string(), said: z.string(), same_amount: z.boolean() }))
    .optional(),
  /** What a reconciliation run has found in statement lines. */
  statement: z
    .object({
      lineIds: z.array(id),
      /** The expected and the found value of each differing field, for a person. */
      differences: z.array(
        z.object({ field: z.string(), expected: z.string().nullable(), found: z.string().nullable() }),
      ),
      facts: z.record(z.string(), z.string()),
      /** For a malformed row: the code and parameters of the sentence in `facts.reason`. */
      malformed: malformedReasonSchema.optional(),
    })
    .optional(),
});
export type IssueEvidence = z.infer<typeof issueEvidenceSchema>;

/** An attribution that one person has proposed and another one confirms or rejects. */
export const proposalSchema = z.object({
  proposalId: id,
  orderId: id,
  reason: z.string(),
  proposedBy: id,
  proposedByName: z.string(),
  proposedAtMs: z.number(),
});
export type Proposal = z.infer<typeof proposalSchema>;

export const issueSchema = z.object({
  issueId: id,
  kind: z.enum(ISSUE_KINDS),
  status: z.enum(ISSUE_STATUSES),
  source: z.enum(ISSUE_SOURCES),
  /** `provider:<config id>`, or `statement:<account id>`. */
  accountKey: z.string(),
  configId: id.nullable(),
  stationId: id.nullable(),
  intentId: id.nullable(),
  orderId: id.nullable(),
  amountMinor: signedMinor.nullable(),
  currency: z.string().nullable(),
  providerReference: z.string(),
  evidence: issueEvidenceSchema,
  /** SHA-256 in hex of the evidence that a decision depends on: amount, currency, status and type. */
  evidenceHash: z.string(),
  assigneeId: id.nullable(),
  supersedesId: id.nullable(),
  supersededBy: id.nullable(),
  openedAtMs: z.number(),
  lastSeenAtMs: z.number(),
  resolvedAtMs: z.number().nullable(),
  resolvedBy: z.int().nullable(),
  reason: z.string().nullable(),
  transactionId: id.nullable(),
  /** The attribution that waits for a second person. */
  proposal: proposalSchema.nullable(),
});
export type Issue = z.infer<typeof issueSchema>;

/** Selects issues. A field that is left out selects all. */
export const issueFilterSchema = z.object({
  status: z.enum(ISSUE_STATUSES).optional(),
  /** True selects open and assigned issues, false all others. */
  isUnresolved: z.boolean().optional(),
  kind: z.enum(ISSUE_KINDS).optional(),
  source: z.enum(ISSUE_SOURCES).optional(),
  accountKey: z.string().optional(),
  stationId: id.optional(),
  assigneeId: id.optional(),
  currency: z.string().optional(),
  /** Bounds of the amount without its sign. */
  leastMinor: amountMinor.optional(),
  mostMinor: amountMinor.optional(),
  /** Opened at least this long ago. */
  leastAgeMs: z.number().min(0).optional(),
});
export type IssueFilter = z.infer<typeof issueFilterSchema>;

/** Newest first; `beforeId` continues a list. */
export const listIssues = repeatable(
  "providers.listIssues",
  z.object({ caller, ...issueFilterSchema.shape, ...pageBefore }),
  z.object({ issues: z.array(issueSchema), hasMore: z.boolean() }),
);

const oneIssue = z.object({ issue: issueSchema });
export const issueCommentSchema = z.object({
  commentId: id,
  authorId: id,
  authorName: z.string(),
  text: z.string(),
  createdAtMs: z.number(),
});
export type IssueComment = z.infer<typeof issueCommentSchema>;
/** A step of an issue's life cycle, from the audit log. `data` has the state before the step. */
const issueStepSchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: actorSchema,
  action: z.string(),
  data: z.record(z.string(), z.unknown()),
});

/**
 * An issue with its comments, its steps and its earlier evidence, each oldest first. `aloneUpToMinor` is how much of
 * its currency one person may attribute alone; null where the issue has no currency. `orders` are the order of the issue
 * and that of its proposal.
 */
export const getIssue = repeatable(
  "providers.getIssue",
  z.object({ caller, issueId: id }),
  z.object({
    issue: issueSchema,
    comments: z.array(issueCommentSchema),
    steps: z.array(issueStepSchema),
    priorEvidence: z.array(z.record(z.string(), z.unknown())),
    aloneUpToMinor: amountMinor.nullable(),
    orders: z.array(z.object({ orderId: id, orderDisplayNumber: id, stationId: id })),
  }),
);
/** Null for `assigneeId` removes the assignee. Refuses with `not_found` when the assignee may not resolve issues. */
export const assignIssue = once(
  "providers.assignIssue",
  z.object({ caller, issueId: id, assigneeId: id.nullable() }),
  oneIssue,
);
export const commentIssue = once(
  "providers.commentIssue",
  z.object({ caller, issueId: id, text: detailsSchema, creation: creation.optional() }),
  z.object({ comment: issueCommentSchema }),
);
/**
 * Pays this order with the issue's payment, through the payment seam. When the seam refuses, the issue stays open.
 * Above the organization's limit one person can only propose it (`attribution-proposals.ts`). Refuses with `conflict` and a
 * reason of `ISSUE_CONFLICTS`. When the same person repeats the request with the same order and reason, the answer is
 * the same.
 */
export const attributeIssue = repeatable(
  "providers.attributeIssue",
  z.object({ caller, issueId: id, orderId: id, reason }),
  oneIssue,
);
/**
 * Closes an issue that was resolved outside, for example by a refund. The issue keeps the reason, and its payment can
 * pay nothing any more, whatever the provider asserts later. Repetitions and refusals are as for `attributeIssue`.
 * `evidenceHash` is the hash of the evidence that the person has seen; refuses with `evidence_changed` when the
 * evidence is another one.
 */
export const closeIssue = once(
  "providers.closeIssue",
  z.object({ caller, issueId: id, reason, evidenceHash: z.string().optional() }),
  oneIssue,
);
const refused = z.array(z.object({ issueId: id, reason: z.string() }));
/**
 * Closes the oldest unresolved issues that match the filter, each as `closeIssue` does. The service reads their ids
 * once, when the request begins. `throughId` leaves out newer issues, which the person has not seen. `refused` has each
 * issue that cannot be closed, with the reason.
 */
export const closeIssues = once(
  "providers.closeIssues",
  z.object({ caller, filter: issueFilterSchema, throughId: id.optional(), reason }),
  z.object({
    closedIds: z.array(id),
    refused,
    /** More issues match the filter: the caller repeats the request. */
    hasMore: z.boolean(),
  }),
);
/**
 * Opens an issue again that the caller has closed, within `ISSUE_LIMITS.undoMs` and before its period is closed. An
 * open issue does not change.
 */
export const undoIssueClosing = once("providers.undoIssueClosing", z.object({ caller, issueId: id }), oneIssue);
/** Reopens each of the issues as `undoIssueClosing` does. `refused` has each issue that stays as it is, with the reason. */
export const undoIssueClosings = once(
  "providers.undoIssueClosings",
  z.object({ caller, issueIds: z.array(id).min(1).max(BOUNDS.issuesClosedAtOnce) }),
  z.object({
    /** How many are open now, also those that were open before. */
    reopened: z.int(),
    refused,
    /** The request had no time for these: the caller sends them again. */
    remainingIds: z.array(id),
  }),
);

export const ISSUE_EVENT_TYPES = [
  /** The issues are new, or open again: a person has undone a decision, or the cause has come back. */
  "issues_opened",
  /** The evidence, the assignee or the proposal of an attribution has changed. */
  "issues_changed",
  /** The issues were attributed or closed, or ended because the cause is gone. */
  "issues_closed",
] as const;
/** An event for subscribers of the bus: the issues of one organization that one transaction has changed. */
const issueEventSchema = z.object({
  type: z.enum(ISSUE_EVENT_TYPES),
  organizationId: id,
  issues: z.array(
    z.object({
      issueId: id,
      kind: z.enum(ISSUE_KINDS),
      status: z.enum(ISSUE_STATUSES),
      accountKey: z.string(),
      stationId: id.nullable(),
      supersedesId: id.nullable(),
    }),
  ),
});
export type IssueEvent = z.infer<typeof issueEventSchema>;
/** An event in the stream. `eventId` is the id of the outbox row: each publication of the event has the same. */
export const publishedIssueEventSchema = z.object({ eventId: id, event: issueEventSchema });
export type PublishedIssueEvent = z.infer<typeof publishedIssueEventSchema>;
