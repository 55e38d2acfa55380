/** Matches of statement lines and payments: matches, candidates, and the decisions about them. */
import { z } from "zod";
import { formatExactAmount } from "../../../machines/currency.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as bus from "../../../services/bus/messages/reconciliation-matches.ts";
import { LINE_KINDS } from "../../../services/bus/messages/statement-formats.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, hasMoreBefore, pageAfterQuery, pageBeforeQuery, queryId } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import {
  currencySchema,
  exactAmountSchema,
  idSchema,
  optionalTimestamp,
  reasonSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { issueKindSchema } from "./issue-json.ts";

const paymentKeySchema = z
  .string()
  .min(1)
  .max(BOUNDS.paymentKeyCharacters)
  .meta({
    description: "The key of the payment; for a settled order, `transaction:` and the transaction's id.",
    examples: ["transaction:42"],
  });
export const lineKindSchema = z.enum(LINE_KINDS).meta({
  id: "StatementLineKind",
  description:
    "What a line of a statement is. `not_money`: a row that failed, was cancelled or is for information; `planned_payout`: a payout that is announced and not yet made.",
});
const lineSchema = z
  .object({
    line_id: idSchema,
    kind: lineKindSchema,
    booked_on: z.iso.date(),
    amount: exactAmountSchema.meta({ description: "Incoming funds are positive." }),
    currency: currencySchema,
    provider_reference: z.string(),
  })
  .meta({ id: "MatchedLine" });
const paymentSchema = z
  .object({
    payment_key: paymentKeySchema,
    source: z.enum(bus.PAYMENT_SOURCES).meta({
      id: "MatchedPaymentSource",
      description:
        "`transaction`: an order that was settled; `late_evidence`: a device's report after the collection had ended; `payout`: a payout of another account that arrives at this one; `batch`: the lines that a payout contains; `issue`: a payment that a callback reported.",
    }),
    transaction_id: idSchema.nullable(),
    order_id: idSchema.nullable(),
    order_display_number: idSchema.nullable().meta({ description: "The number that tills and displays show." }),
    station_id: idSchema.nullable(),
    route: z.string().nullable(),
    amount: exactAmountSchema.nullable(),
    currency: currencySchema.nullable(),
    reference: z.string().nullable(),
    settled_at: timestampSchema.nullable(),
  })
  .meta({ id: "MatchedPayment" });
const explanationSchema = z.record(z.string(), z.union([z.string(), z.number()])).meta({
  description:
    "Why the score is so. `reference`: which reference both sides have, or the points for a reference in the text. `amount`, `date`, `time` and `terminal`: points. `daysApart` and `minutesApart`: the time between both. For a group: `payments` or `lines` is the number of its parts, `sumMinor` their sum, and `differenceMinor` the missing amount.",
  examples: [{ amount: 40, date: 20, time: 16, terminal: 0, reference: 0, daysApart: 0, minutesApart: 3 }],
});
const scoreSchema = z.int().meta({ description: "0 to 100: the sum of the points." });

export const matchSchema = z
  .object({
    match_id: idSchema,
    account_id: idSchema,
    run_id: idSchema.meta({ description: "The run that found it first." }),
    tier: z.enum(bus.MATCH_TIERS).meta({
      id: "MatchTier",
      description: "`exact`: a run found it by reference and amount; `confirmed`: a person decided it.",
    }),
    score: scoreSchema,
    explanation: explanationSchema,
    lines: z.array(lineSchema),
    payments: z.array(paymentSchema),
    created_at: timestampSchema,
  })
  .meta({ id: "StatementMatch" });
const matchesSchema = z.object({ matches: z.array(matchSchema), has_more: hasMoreBefore });
export const matchesQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  account_id: queryId()
    .optional()
    .meta({ description: "Only matches of this account's lines; of all accounts when left out." }),
  line_id: queryId().optional().meta({ description: "Only the match of this line." }),
  transaction_id: queryId().optional().meta({ description: "Only the match of this transaction." }),
});
const candidatesSchema = z.object({
  lines: z.array(
    z
      .object({
        line: lineSchema,
        kind: issueKindSchema,
        issue_id: idSchema.nullable(),
        candidates: z
          .array(z.object({ payment: paymentSchema, score: scoreSchema, explanation: explanationSchema }))
          .meta({ description: "The best first." }),
      })
      .meta({ id: "LineCandidates" }),
  ),
  has_more: hasMoreAfter,
});
const candidatesQuerySchema = z.strictObject({
  ...pageAfterQuery,
  account_id: queryId()
    .optional()
    .meta({ description: "Only lines of the statements of this one account; of all accounts when left out." }),
  line_id: queryId()
    .optional()
    .meta({ description: "Only the candidates of this one line; of all lines when left out." }),
});

const together = <T extends z.ZodType>(item: T) => z.array(item).min(1).max(BOUNDS.matchedTogether);
const confirmBodySchema = z
  .strictObject({
    line_ids: together(idSchema),
    payment_keys: together(paymentKeySchema),
    reason: reasonSchema,
  })
  .meta({
    id: "ConfirmMatch",
    examples: [{ line_ids: [42], payment_keys: ["transaction:42"], reason: "The slip was typed wrong." }],
  });
const rejectBodySchema = z
  .strictObject({ line_id: idSchema, payment_key: paymentKeySchema, reason: reasonSchema })
  .meta({
    id: "RejectMatch",
    examples: [{ line_id: 42, payment_key: "transaction:42", reason: "That guest paid in cash." }],
  });
const decisionsSchema = z
  .object({
    decisions: z.array(
      z.object({
        line_id: idSchema,
        payment: paymentSchema,
        decision: z.enum(bus.MATCH_DECISIONS).meta({ id: "MatchDecisionWord" }),
        decided_by: idSchema,
        decided_at: timestampSchema,
        reason: z.string(),
      }),
    ),
  })
  .meta({ id: "MatchDecisions" });

const lineJson = ({ lineId, kind, bookedOn, amountMinor, currency, providerReference }: bus.MatchedLine) => ({
  line_id: lineId,
  kind,
  booked_on: bookedOn,
  amount: formatExactAmount(BigInt(amountMinor), currency),
  currency,
  provider_reference: providerReference,
});

function paymentJson(payment: bus.MatchedPayment): z.infer<typeof paymentSchema> {
  const { amountMinor, currency } = payment;
  return {
    payment_key: payment.paymentKey,
    source: payment.source,
    transaction_id: payment.transactionId,
    order_id: payment.orderId,
    order_display_number: payment.orderDisplayNumber,
    station_id: payment.stationId,
    route: payment.route,
    amount: amountMinor === null || currency === null ? null : formatExactAmount(BigInt(amountMinor), currency),
    currency,
    reference: payment.reference,
    settled_at: optionalTimestamp(payment.settledAtMs),
  };
}

export const matchJson = (match: bus.Match): z.infer<typeof matchSchema> => ({
  match_id: match.matchId,
  account_id: match.accountId,
  run_id: match.runId,
  tier: match.tier,
  score: match.score,
  explanation: match.explanation,
  lines: match.lines.map(lineJson),
  payments: match.payments.map(paymentJson),
  created_at: toTimestamp(match.createdAtMs),
});

const decisionsJson = (decisions: readonly bus.MatchDecision[]): z.infer<typeof decisionsSchema> => ({
  decisions: decisions.map(({ lineId, payment, decision, decidedBy, decidedAtMs, reason }) => ({
    line_id: lineId,
    payment: paymentJson(payment),
    decision,
    decided_by: decidedBy,
    decided_at: toTimestamp(decidedAtMs),
    reason,
  })),
});

const listMatches: SessionHandler<undefined, z.infer<typeof matchesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { account_id: accountId, line_id: lineId, transaction_id: transactionId, before_id: beforeId, limit } = query;
  const request = { caller, accountId, lineId, transactionId, beforeId, limit };
  const { matches, hasMore } = await deps.bus.call(bus.listMatches, request);
  return ok({ matches: matches.map(matchJson), has_more: hasMore });
};

const listCandidates: SessionHandler<undefined, z.infer<typeof candidatesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { account_id: accountId, line_id: lineId, since_id: sinceId, limit } = query;
  const { lines, hasMore } = await deps.bus.call(bus.listCandidates, { caller, accountId, lineId, sinceId, limit });
  return ok({
    lines: lines.map(({ line, kind, issueId, candidates }) => ({
      line: lineJson(line),
      kind,
      issue_id: issueId,
      candidates: candidates.map(({ payment, score, explanation }) => ({
        payment: paymentJson(payment),
        score,
        explanation,
      })),
    })),
    has_more: hasMore,
  });
};

/** Errors: `not_found`, `conflict` with a reason. */
const confirmMatch: SessionHandler<z.infer<typeof confirmBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, lineIds: body.line_ids, paymentKeys: body.payment_keys, reason: body.reason };
  const { decisions } = await deps.bus.call(bus.confirmMatch, request);
  return ok(decisionsJson(decisions));
};

/** Error: `not_found`. */
const rejectMatch: SessionHandler<z.infer<typeof rejectBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, lineId: body.line_id, paymentKey: body.payment_key, reason: body.reason };
  const { decisions } = await deps.bus.call(bus.rejectMatch, request);
  return ok(decisionsJson(decisions));
};

const matches = "/api/reconciliation/v1/matches/" as const;
const decided = { 200: { description: "The current decision about each line and payment.", schema: decisionsSchema } };
const AFTERWARDS =
  "The decision applies from the next run on, which starts by itself. It applies again when the line's file is imported again.";

export const matchRoutes = [
  reconciliationRoute({
    method: "GET",
    path: matches,
    operation: "listMatches",
    summary: "List which lines belong to which payments",
    description: "The matches of the last runs. A match keeps its id in later runs while it is valid.",
    query: matchesQuerySchema,
    replies: { 200: { description: "Newest first.", schema: matchesSchema } },
    handler: listMatches,
  }),
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/candidates/",
    operation: "listCandidates",
    summary: "List the possible payments of uncertain lines",
    description:
      "Lines with `reference_mismatch` or `ambiguous_match`, with their best candidates and the explanation of each score.",
    query: candidatesQuerySchema,
    replies: { 200: { description: "By line.", schema: candidatesSchema } },
    handler: listCandidates,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${matches}confirm/`,
    operation: "confirmMatch",
    summary: "Confirm that lines belong to payments",
    description: `One line for several payments, or several lines for one payment; their sums must be equal. ${AFTERWARDS} It settles no order. The \`reason\` of a \`conflict\` is one of ${bus.MATCH_CONFLICTS.map((word) => `\`${word}\``).join(", ")}.`,
    body: confirmBodySchema,
    replies: decided,
    errors: ["not_found", "conflict"],
    handler: confirmMatch,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${matches}reject/`,
    operation: "rejectMatch",
    summary: "Reject a candidate or a match",
    description: `No later run proposes or matches this line and this payment again, unless a person confirms them. ${AFTERWARDS} Refuses with a \`conflict\` and the \`reason\` \`line_attributed\` what the attribution of an issue has settled.`,
    body: rejectBodySchema,
    replies: decided,
    errors: ["not_found", "conflict"],
    handler: rejectMatch,
  }),
];
