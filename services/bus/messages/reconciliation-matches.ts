/**
 * Which statement lines belong to which payments: the matches of runs, the candidates of lines without a certain
 * payment, and the decisions of people. Every operation needs `reconciliation.manage`. Amounts are signed minor units.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { signedMinorSchema as signedMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { ISSUE_KINDS } from "./issues.ts";
import { reasonSchema as reason } from "./sentence.ts";
import { LINE_KINDS } from "./statement-formats.ts";

const id = z.int().positive();

/** `exact`: a run has found it by reference and amount. `confirmed`: a person has decided it. */
export const MATCH_TIERS = ["exact", "confirmed"] as const;
/** The kinds of the payment side of a match. `batch`: the lines of the same statement that belong to a payout. */
export const PAYMENT_SOURCES = ["transaction", "late_evidence", "payout", "batch", "issue"] as const;
/** The key of a payment side; it begins with its source. */
const paymentKey = z.string().min(1).max(BOUNDS.paymentKeyCharacters);

const matchedLineSchema = z.object({
  lineId: id,
  kind: z.enum(LINE_KINDS),
  bookedOn: z.iso.date(),
  amountMinor: signedMinor,
  currency: z.string(),
  providerReference: z.string(),
});
export type MatchedLine = z.infer<typeof matchedLineSchema>;

/** A field is null when payments of this source do not have it. */
const matchedPaymentSchema = z.object({
  paymentKey,
  source: z.enum(PAYMENT_SOURCES),
  transactionId: id.nullable(),
  orderId: id.nullable(),
  orderDisplayNumber: id.nullable(),
  stationId: id.nullable(),
  route: z.string().nullable(),
  amountMinor: signedMinor.nullable(),
  currency: z.string().nullable(),
  reference: z.string().nullable(),
  settledAtMs: z.number().nullable(),
});
export type MatchedPayment = z.infer<typeof matchedPaymentSchema>;

/** Why a match has its score: the points of each equal field, which reference is equal, and how far apart both are. */
const explanationSchema = z.record(z.string(), z.union([z.string(), z.number()]));

export const matchSchema = z.object({
  matchId: id,
  accountId: id,
  /** The run that found the match first. */
  runId: id,
  tier: z.enum(MATCH_TIERS),
  score: z.int(),
  explanation: explanationSchema,
  lines: z.array(matchedLineSchema),
  payments: z.array(matchedPaymentSchema),
  createdAtMs: z.number(),
});
export type Match = z.infer<typeof matchSchema>;

const lineCandidatesSchema = z.object({
  line: matchedLineSchema,
  kind: z.enum(ISSUE_KINDS),
  issueId: id.nullable(),
  /** The best candidate first. */
  candidates: z.array(z.object({ payment: matchedPaymentSchema, score: z.int(), explanation: explanationSchema })),
});
export type LineCandidates = z.infer<typeof lineCandidatesSchema>;

/** Why a decision is not possible: the `reason` of a `conflict`. */
export const MATCH_CONFLICTS = [
  /** The sums of the lines and of the payments differ. */
  "sums_differ",
  "other_currency",
  /** The request has several lines and several payments: on one side there must be only one. */
  "several_on_both_sides",
  /** A run or a person has matched it with another one. A person must reject that match first. */
  "line_matched",
  "payment_matched",
  /** The money of the line pays an order, by the attribution of an issue. */
  "line_attributed",
  /** The payment is a report or a callback that has settled no order. A person rejects it, and attributes the line's money. */
  "nothing_settled",
] as const;

/** Newest first. */
export const listMatches = repeatable(
  "reconciliation.listMatches",
  z.object({
    caller,
    accountId: id.optional(),
    lineId: id.optional(),
    transactionId: id.optional(),
    ...pageBefore,
  }),
  z.object({ matches: z.array(matchSchema), hasMore: z.boolean() }),
);

/** By line; `sinceId` is the last line of the page before. */
export const listCandidates = repeatable(
  "reconciliation.listCandidates",
  z.object({ caller, accountId: id.optional(), lineId: id.optional(), ...pageAfter }),
  z.object({ lines: z.array(lineCandidatesSchema), hasMore: z.boolean() }),
);

export const MATCH_DECISIONS = ["confirmed", "rejected"] as const;
const decisionSchema = z.object({
  lineId: id,
  payment: matchedPaymentSchema,
  decision: z.enum(MATCH_DECISIONS),
  decidedBy: z.int(),
  decidedAtMs: z.number(),
  reason: z.string(),
});
export type MatchDecision = z.infer<typeof decisionSchema>;

/**
 * Confirms that these lines are these payments: one line of several payments, or several lines of one. Their sums must
 * be equal. The service then starts a run of the account. Refuses with `not_found`, `invalid_request` and `conflict`
 * with a reason of `MATCH_CONFLICTS`.
 */
export const confirmMatch = once(
  "reconciliation.confirmMatch",
  z.object({
    caller,
    lineIds: z.array(id).min(1).max(BOUNDS.matchedTogether),
    paymentKeys: z.array(paymentKey).min(1).max(BOUNDS.matchedTogether),
    reason,
  }),
  z.object({ decisions: z.array(decisionSchema) }),
);

/**
 * Decides that the line is not the payment: no later run matches or proposes them. Refuses with `not_found`,
 * `invalid_request` and, for the transaction that the line's money has paid, `conflict` with `line_attributed`.
 */
export const rejectMatch = once(
  "reconciliation.rejectMatch",
  z.object({ caller, lineId: id, paymentKey, reason }),
  z.object({ decisions: z.array(decisionSchema) }),
);
