/**
 * Issues: what provider callbacks and reconciliation runs find different. Amounts are minor units; every operation needs
 * `reconciliation.manage`.
 *
 *   raised ──► open ◄──► assigned ──► closed, or attributed ──► superseded by a new issue, when its evidence changes
 *               ▲            │           │ undone by the same person
 *               └── ended ◄──┘ ◄─────────┘ (back to open or assigned)
 *
 * `ended`: its cause is gone; it comes back with its cause.
 */
import { z } from "zod";
import { AMOUNT_MINOR_PATTERN, BOUNDS, SIGNED_AMOUNT_MINOR_PATTERN } from "../bounds.ts";
import { malformedReasonSchema } from "../malformed-reasons.ts";
import { once, repeatable } from "../operation.ts";
import { actorSchema, callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";

const id = z.int().positive();
const amountMinor = z.string().regex(AMOUNT_MINOR_PATTERN);
/** Of a statement: a refund and a fee are negative. */
const signedMinor = z.string().regex(SIGNED_AMOUNT_MINOR_PATTERN);

/** What a provider's callback, or its answer to a poll, can raise (contract, "Rules" 7). */
export const CALLBACK_ISSUE_KINDS = [
  /** Money for a payment that was never registered, or a signed callback that cannot be read. */
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
  /** A second payment for an intent that is paid, or money that has paid another order. */
  "duplicate_money",
  /** The provider's money fits the intent, and the order no longer does: the payment seam refused. */
  "settlement_refused",
] as const;

/** What only a reconciliation run can raise, beside most of the above. */
export const STATEMENT_ISSUE_KINDS = [
  "missing_in_statement",
  "direction_mismatch",
  "status_mismatch",
  "ambiguous_match",
  "duplicate_in_statement",
  /** Rows of which two statements that overlap in part do not show whether they are one movement or several. */
  "possible_duplicate",
  "date_out_of_window",
  "fee_mismatch",
  "refund_not_registered",
  "chargeback_not_registered",
  "wrong_station",
  "rounding",
  /** The guest has given more than the order costs, and the statement names the rest a tip. */
  "tip",
  "batch_total_mismatch",
  "malformed_line",
  /** Something that belongs to a period that was closed before it came. */
  "after_closing",
] as const;

/** What does not fit; an operator acts by the kind. */
export const ISSUE_KINDS = [...CALLBACK_ISSUE_KINDS, ...STATEMENT_ISSUE_KINDS] as const;
export type IssueKind = (typeof ISSUE_KINDS)[number];
export const ISSUE_STATUSES = ["open", "assigned", "attributed", "closed", "ended"] as const;
export type IssueStatus = (typeof ISSUE_STATUSES)[number];
export const ISSUE_SOURCES = ["provider", "statement"] as const;

/** Why an issue cannot be resolved as it was asked: the `reason` of a `conflict`. */
export const ISSUE_CONFLICTS = [
  /** Decided already: by another person, in another way, or for another reason. */
  "issue_attributed",
  "issue_closed",
  /** Its cause is gone. */
  "issue_ended",
  /** Its evidence has changed since: the newer issue is the one to decide. */
  "issue_superseded",
  /** Its evidence has changed since the person has seen it: look at it again. */
  "evidence_changed",
  /** Another person, or the system, has closed it. */
  "closed_by_another",
  "undo_too_late",
  /** Its period was closed since, which is never undone. */
  "period_closed",
  /** The issue has as many comments as it can have. */
  "too_many_comments",
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
  /** The issue is not about money, or its line has no reference of the provider: no order can be paid with it. */
  "not_attributable",
  /** The file of its line is being withdrawn. */
  "import_withdrawing",
  /** The amount is above what one person may attribute: propose it to another one. */
  "second_person_needed",
  /** Another proposal waits for a second person. */
  "proposal_waiting",
  /** It was rejected or withdrawn, or what it was about has changed. */
  "proposal_ended",
  /** A second person is wanted. */
  "own_proposal",
  "proposed_by_another",
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
  /** What a run has found in the lines of statements. */
  statement: z
    .object({
      lineIds: z.array(id),
      /** By field, for a person: what was expected and what was found. */
      differences: z.array(
        z.object({ field: z.string(), expected: z.string().nullable(), found: z.string().nullable() }),
      ),
      facts: z.record(z.string(), z.string()),
      /** Of a row that is no line, by the sentence in `facts.reason`. */
      malformed: malformedReasonSchema.optional(),
    })
    .optional(),
});
export type IssueEvidence = z.infer<typeof issueEvidenceSchema>;

/** What one person has proposed, and another one confirms or rejects. */
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
  /** SHA-256 in hex of what a decision depends on: amount, currency, status and type. */
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

/** Which issues; what is left out does not matter. */
export const issueFilterSchema = z.object({
  status: z.enum(ISSUE_STATUSES).optional(),
  /** True: open and assigned ones; false: the others. */
  isUnresolved: z.boolean().optional(),
  kind: z.enum(ISSUE_KINDS).optional(),
  source: z.enum(ISSUE_SOURCES).optional(),
  accountKey: z.string().optional(),
  stationId: id.optional(),
  assigneeId: id.optional(),
  currency: z.string().optional(),
  /** Of the amount without its sign. */
  leastMinor: amountMinor.optional(),
  mostMinor: amountMinor.optional(),
  /** Opened at least this long ago. */
  leastAgeMs: z.number().min(0).optional(),
});
export type IssueFilter = z.infer<typeof issueFilterSchema>;

/** Newest first; `beforeId` continues a list. */
export const listIssues = repeatable(
  "providers.listIssues",
  z.object({
    caller,
    ...issueFilterSchema.shape,
    beforeId: id.optional(),
    limit: z.int().min(1).max(BOUNDS.listed),
  }),
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
/** A step of the life cycle as the audit log has it; `data` names the state before it. */
export const issueStepSchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: actorSchema,
  action: z.string(),
  data: z.record(z.string(), z.unknown()),
});

/**
 * The issue with its comments, its steps and its earlier evidence, each the oldest first, and how much of its currency one
 * person attributes alone: null where the issue has no currency.
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
  }),
);
/** Null for `assigneeId`: it waits for any person again. Refuses with `not_found` for a person who may not decide issues. */
export const assignIssue = once(
  "providers.assignIssue",
  z.object({ caller, issueId: id, assigneeId: id.nullable() }),
  oneIssue,
);
export const commentIssue = once(
  "providers.commentIssue",
  z.object({ caller, issueId: id, text: z.string(), creation: creation.optional() }),
  z.object({ comment: issueCommentSchema }),
);
/**
 * The money pays this order after all, through the payment seam; a refusal of the seam leaves the issue open. Above the
 * organization's limit one person only proposes it (attributions.ts). Refuses with
 * `conflict` and a reason of `ISSUE_CONFLICTS` what cannot be. The same person with the same order and reason again gets
 * the same answer.
 */
export const attributeIssue = repeatable(
  "providers.attributeIssue",
  z.object({ caller, issueId: id, orderId: id, reason: z.string() }),
  oneIssue,
);
/**
 * Resolved outside, for example paid back; the reason stays, and the money pays nothing any more, whatever is asserted later.
 * Repeated and refused as `attributeIssue`. `evidenceHash`: of the evidence that the person has seen; with other evidence it is
 * refused with `evidence_changed`.
 */
export const closeIssue = once(
  "providers.closeIssue",
  z.object({ caller, issueId: id, reason: z.string(), evidenceHash: z.string().optional() }),
  oneIssue,
);
/**
 * Closes the oldest unresolved issues that the filter names, each as `closeIssue` would. The ids are fixed when the request
 * begins; `throughId` leaves out what the person has not seen. An issue that cannot be closed is in `refused` with its reason.
 */
export const closeIssues = once(
  "providers.closeIssues",
  z.object({ caller, filter: issueFilterSchema, throughId: id.optional(), reason: z.string() }),
  z.object({
    closed: z.int(),
    refused: z.array(z.object({ issueId: id, reason: z.string() })),
    /** There are more that the filter names: ask again. */
    hasMore: z.boolean(),
  }),
);
/** The person who closed an issue opens it again, within `ISSUE_LIMITS.undoMs` and before its period is closed. One that is open stays as it is. */
export const undoIssueClosing = once("providers.undoIssueClosing", z.object({ caller, issueId: id }), oneIssue);

export const ISSUE_EVENT_TYPES = [
  /** New, or back: a decision was undone, or its cause has come again. */
  "issues_opened",
  /** Its evidence, its assignee or the proposal of its attribution is another one. */
  "issues_changed",
  /** Attributed, closed, or ended because its cause is gone. */
  "issues_closed",
] as const;
/** What subscribers of the bus learn: several issues of one organization that have changed in one transaction. */
export const issueEventSchema = z.object({
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
/** In the stream: with the id of its outbox row, which is the same however often it is published. */
export const publishedIssueEventSchema = z.object({ eventId: id, event: issueEventSchema });
export type PublishedIssueEvent = z.infer<typeof publishedIssueEventSchema>;
