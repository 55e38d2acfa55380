/** Issues: money that does not fit. An operator attributes it to an order through the payment seam, or closes it with a reason. */
import { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import * as bus from "../../../services/bus/messages/issues.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery } from "../../http/page.ts";
import { type Route, route, session } from "../../http/route.ts";
import {
  amountSchema,
  currencySchema,
  idSchema,
  reasonSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";

const issueStatusSchema = z.enum(["open", "attributed", "closed"]).meta({ id: "IssueStatus" });

const text = (description: string): z.ZodString => z.string().meta({ description });

const factsShape = {
  reference: text("The service's reference of the payment; empty where none was given."),
  provider_reference: text("The provider's reference of the money; empty where there is none."),
  account: text(
    "The account that the money must reach, or has reached by the provider's report; empty where none was given.",
  ),
  amount: amountSchema.nullable().meta({ description: "Null where none can be read." }),
  currency: currencySchema.nullable(),
};
const saidSchema = text("The provider's text: JSON, or the text of what could not be read.");

/** Every part is there, and null where an issue of its kind has none. */
const issueEvidenceSchema = z
  .object({
    learned_from: text("The callback's event type, or how the provider was asked.").nullable(),
    asserted: z
      .object(factsShape)
      .nullable()
      .meta({ description: "What the provider asserts, as far as it can be read." }),
    said: saidSchema.nullable(),
    registered: z
      .object({
        ...factsShape,
        paid_reference: text("The provider's name of the money that the payment was paid with.").nullable(),
      })
      .nullable()
      .meta({
        description: "What was registered when the payment was asked for; null where the money names no payment.",
      }),
    station: z
      .object({
        code: text("An error code of the station."),
        status: text("The intent's status at that moment.").nullable(),
      })
      .nullable()
      .meta({ description: "Why the intent's station did not settle with money that fits." }),
    further: z
      .array(
        z.object({
          at: timestampSchema,
          learned_from: z.string(),
          said: saidSchema,
          same_amount: z.boolean().meta({ description: "False: the amount differs from the issue's." }),
        }),
      )
      .meta({ description: "What the provider has reported about this money since, the oldest first, up to a bound." }),
  })
  .meta({ id: "IssueEvidence", description: "What was registered, beside what the provider reports. Never a secret." });

const EXAMPLE_FACTS = {
  reference: "7Q2M4K8D1VXA9T3H6NBE5RWZ",
  provider_reference: "tx-1",
  account: "M-1",
  amount: "12.50",
  currency: "EUR",
};
/** An order of 12.50 for which the provider reports 12.40. */
const EXAMPLE = {
  issue_id: 42,
  kind: "amount_mismatch",
  status: "open",
  config_id: 1,
  station_id: 1,
  intent_id: 42,
  order_id: 42,
  amount: "12.40",
  currency: "EUR",
  provider_reference: "tx-1",
  evidence: {
    learned_from: "payment.paid",
    asserted: { ...EXAMPLE_FACTS, amount: "12.40" },
    said: '{"reference":"7Q2M4K8D1VXA9T3H6NBE5RWZ","transaction_id":"tx-1","merchant_id":"M-1","amount":"12.40","currency":"EUR"}',
    registered: { ...EXAMPLE_FACTS, provider_reference: "", paid_reference: null },
    station: null,
    further: [],
  },
  opened_at: "2026-11-20T12:00:00.000Z",
  resolved_at: null,
  resolved_by: null,
  reason: null,
  transaction_id: null,
} as const;

const issueSchema = z
  .object({
    issue_id: idSchema,
    kind: z.enum(bus.ISSUE_KINDS).meta({ id: "IssueKind" }),
    status: issueStatusSchema,
    config_id: idSchema,
    station_id: idSchema.nullable(),
    intent_id: idSchema
      .nullable()
      .meta({ description: "The collection that the money names; null where it names none." }),
    order_id: idSchema
      .nullable()
      .meta({ description: "The order of that collection, or the one that it was attributed to." }),
    amount: amountSchema.nullable().meta({ description: "How much money it is; null where that cannot be read." }),
    currency: currencySchema.nullable(),
    provider_reference: z.string(),
    evidence: issueEvidenceSchema,
    opened_at: timestampSchema,
    resolved_at: timestampSchema.nullable(),
    resolved_by: z.int().nullable().meta({ description: "A person's id; null when it resolved by itself." }),
    reason: z.string().nullable(),
    transaction_id: idSchema.nullable().meta({ description: "What it was attributed by, through the payment seam." }),
  })
  .meta({ id: "Issue", examples: [EXAMPLE] });
const issuesSchema = z.object({ issues: z.array(issueSchema), has_more: hasMoreBefore });
const issuesQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  status: issueStatusSchema.optional().meta({ description: "Only issues of this status; all when left out." }),
});

const attributeIssueBodySchema = z
  .strictObject({ order_id: idSchema, reason: reasonSchema })
  .meta({ id: "AttributeIssue", examples: [{ order_id: 42, reason: "The guest paid after the collection expired." }] });
export const closeIssueBodySchema = z
  .strictObject({ reason: reasonSchema })
  .meta({ id: "CloseIssue", examples: [{ reason: "Paid back by the provider on 2026-11-20." }] });

/** For the descriptions of both operations. */
const ISSUE_CONFLICT_DESCRIPTION = `The \`reason\` of a \`conflict\` is one of ${bus.ISSUE_CONFLICTS.map((word) => `\`${word}\``).join(", ")}. The same person with the same body again gets the same answer.`;

function issueJson(issue: bus.Issue): z.infer<typeof issueSchema> {
  const { amountMinor, currency } = issue;
  return {
    issue_id: issue.issueId,
    kind: issue.kind,
    status: issue.status,
    config_id: issue.configId,
    station_id: issue.stationId,
    intent_id: issue.intentId,
    order_id: issue.orderId,
    amount: amountMinor === null || currency === null ? null : formatAmount(amountMinor, currency),
    currency,
    provider_reference: issue.providerReference,
    evidence: evidenceJson(issue.evidence),
    opened_at: toTimestamp(issue.openedAtMs),
    resolved_at: issue.resolvedAtMs === null ? null : toTimestamp(issue.resolvedAtMs),
    resolved_by: issue.resolvedBy,
    reason: issue.reason,
    transaction_id: issue.transactionId,
  };
}

function evidenceJson(evidence: bus.IssueEvidence): z.infer<typeof issueEvidenceSchema> {
  const { learnedFrom, asserted, said, registered, station, further = [] } = evidence;
  return {
    learned_from: learnedFrom ?? null,
    asserted: asserted === undefined ? null : factsJson(asserted),
    said: said ?? null,
    registered: registered ? { ...factsJson(registered), paid_reference: registered.paidReference } : null,
    station: station ?? null,
    further: further.map(({ at, learned_from, said: words, same_amount }) => ({
      at: new Date(at).toISOString(),
      learned_from,
      said: words,
      same_amount,
    })),
  };
}

function factsJson({
  reference,
  providerReference,
  account,
  amountMinor,
  currency,
}: NonNullable<bus.IssueEvidence["asserted"]>) {
  const amount = amountMinor === null || currency === null ? null : formatAmount(amountMinor, currency);
  return { reference, provider_reference: providerReference, account, amount, currency };
}

const listIssues: SessionHandler<undefined, z.infer<typeof issuesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { status, before_id: beforeId, limit } = query;
  const { issues, hasMore } = await deps.bus.call(bus.listIssues, { caller, status, beforeId, limit });
  return ok({ issues: issues.map(issueJson), has_more: hasMore });
};

/** Refuses with `not_found`, `conflict` with a reason, and the payment seam's refusals. */
const attributeIssue: SessionHandler<z.infer<typeof attributeIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, issueId: context.id("issue_id"), orderId: body.order_id, reason: body.reason };
  const { issue } = await deps.bus.call(bus.attributeIssue, request);
  return ok(issueJson(issue));
};

/** Refuses with `not_found`, `conflict` with a reason. */
const closeIssue: SessionHandler<z.infer<typeof closeIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { issue } = await deps.bus.call(bus.closeIssue, {
    caller,
    issueId: context.id("issue_id"),
    reason: body.reason,
  });
  return ok(issueJson(issue));
};

const who = session("reconciliation.manage");
const tag = "reconciliation";
const issues = "/api/reconciliation/v1/issues/" as const;
const issue = `${issues}{issue_id}` as const;
const issueReply = { 200: { description: "The issue after the change.", schema: issueSchema } };

export const issueRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: issues,
    operation: "listIssues",
    tag,
    summary: "List the money that does not fit",
    description: "Each kind names what differs; nothing of it has paid an order by itself.",
    who,
    query: issuesQuerySchema,
    replies: { 200: { description: "Newest first.", schema: issuesSchema } },
    errors: [],
    handler: listIssues,
  }),
  route({
    method: "POST",
    path: `${issue}/attribute/`,
    operation: "attributeIssue",
    tag,
    summary: "Pay an order with it after all",
    description: `Through the payment seam: amount and currency must be the order's, the order unpaid and not just being collected, and of the filial whose account has the money. Money pays once. ${ISSUE_CONFLICT_DESCRIPTION}`,
    who,
    body: attributeIssueBodySchema,
    replies: issueReply,
    errors: ["not_found", "conflict", "order_unknown", "order_already_paid", "order_changed", "order_voided"],
    handler: attributeIssue,
  }),
  route({
    method: "POST",
    path: `${issue}/close/`,
    operation: "closeIssue",
    tag,
    summary: "Close it, resolved outside",
    description: `For money that was paid back, or that another system accounts for; the reason stays in the audit log, and the money pays nothing any more. ${ISSUE_CONFLICT_DESCRIPTION}`,
    who,
    body: closeIssueBodySchema,
    replies: issueReply,
    errors: ["not_found", "conflict"],
    handler: closeIssue,
  }),
];
