/**
 * Issues: the differences that callbacks and reconciliation runs find. An operator assigns an issue, attributes its payment to an
 * order through the payment seam, or closes it with a reason.
 */
import { z } from "zod";
import { parseAmount } from "../../../machines/currency.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as bus from "../../../services/bus/messages/issues.ts";
import { detailsSchema } from "../../../services/bus/messages/sentence.ts";
import { creationHeaderSchema, creationOf } from "../../http/command-id.ts";
import { ApiError, created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery, queryId, queryNumber } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { currencySchema, idSchema, reasonSchema } from "../../http/shared-schemas.ts";
import { commentJson, issueCommentSchema, issueDetailsJson, issueDetailsSchema } from "./issue-details.ts";
import { issueJson, issueKindSchema, issueSchema, issueSourceSchema, issueStatusSchema } from "./issue-json.ts";

const DAY_MS = 24 * 3_600_000;
/** Ten years: longer than the retention of issues, and small enough for date arithmetic. */
const MOST_DAYS = 3_650;

const issuesSchema = z.object({ issues: z.array(issueSchema), has_more: hasMoreBefore });

const decimal = z
  .string()
  .regex(/^\d{1,10}(?:\.\d{1,3})?$/)
  .meta({ examples: ["12.50"] });

/** The filters of both the list and the bulk closing. */
const filterShape = {
  kind: issueKindSchema.optional().meta({ description: "Only issues of this one kind; all kinds when left out." }),
  source: issueSourceSchema
    .optional()
    .meta({ description: "Only issues that callbacks found first, or only issues that runs found first." }),
  account: z
    .string()
    .regex(/^(?:provider|statement):[1-9]\d{0,17}$/)
    .optional()
    .meta({
      description: "Only issues of this account: `provider:` and a config's id, or `statement:` and an account's id.",
      examples: ["provider:1"],
    }),
  currency: currencySchema.optional().meta({ description: "Only issues in this currency, by its ISO 4217 code." }),
  min_amount: decimal.optional().meta({
    description: "Only issues of at least this amount, whatever its sign; `currency` must be given with it.",
  }),
  max_amount: decimal.optional().meta({
    description: "Only issues of at most this amount, whatever its sign; `currency` must be given with it.",
  }),
};
const DESCRIPTIONS = {
  station: "Only issues of this station; issues without a station are left out.",
  assignee: "Only issues that this person works on, or has worked on.",
  age: "Only issues that were opened at least this many days ago.",
};
export const issuesQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  ...filterShape,
  status: issueStatusSchema.optional().meta({ description: "Only issues of this status; all when left out." }),
  decision: z
    .enum(["pending", "made"])
    .meta({ id: "IssueDecision" })
    .optional()
    .meta({ description: "`pending`: only issues that wait for a decision, open or assigned; `made`: the others." }),
  station_id: queryId().optional().meta({ description: DESCRIPTIONS.station }),
  assignee_id: queryId().optional().meta({ description: DESCRIPTIONS.assignee }),
  min_age_days: queryNumber({ least: 0, most: MOST_DAYS }).optional().meta({ description: DESCRIPTIONS.age }),
});

export const attributeIssueBodySchema = z
  .strictObject({ order_id: idSchema, reason: reasonSchema })
  .meta({ id: "AttributeIssue", examples: [{ order_id: 42, reason: "The guest paid after the collection expired." }] });
export const closeIssueBodySchema = z
  .strictObject({
    reason: reasonSchema,
    evidence_hash: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional()
      .meta({
        description:
          "The `evidence_hash` that the person has seen. If the issue has another hash now, the answer is a `conflict` with the `reason` `evidence_changed`, and the issue stays open.",
      }),
  })
  .meta({ id: "CloseIssue", examples: [{ reason: "Paid back by the provider on 2026-11-20." }] });
const assignIssueBodySchema = z
  .strictObject({ assignee_id: idSchema.nullable().meta({ description: "Null: the issue waits for any person." }) })
  .meta({ id: "AssignIssue", examples: [{ assignee_id: 42 }] });
const commentIssueBodySchema = z
  .strictObject({ text: detailsSchema.meta({ description: "A few sentences; line ends are allowed." }) })
  .meta({ id: "CommentIssue", examples: [{ text: "The bank looks for it; answer on Monday." }] });
const undecidedStatusSchema = z
  .enum(["open", "assigned"])
  .meta({ id: "UndecidedIssueStatus", description: "`open`: waits for any person; `assigned`: a person works on it." });
const bulkFilterSchema = z
  .strictObject({
    ...filterShape,
    status: undecidedStatusSchema.optional().meta({
      description: "Only issues without an assignee, or only issues with one; both when left out.",
    }),
    station_id: idSchema.optional().meta({ description: DESCRIPTIONS.station }),
    assignee_id: idSchema.optional().meta({ description: DESCRIPTIONS.assignee }),
    min_age_days: z.int().min(0).max(MOST_DAYS).optional().meta({ description: DESCRIPTIONS.age }),
  })
  .refine((filter) => Object.keys(filter).length > 0, {
    error: "Name at least one field: the request closes the issues that match the filter.",
  });
const closeIssuesBodySchema = z
  .strictObject({
    filter: bulkFilterSchema,
    through_id: idSchema
      .optional()
      .meta({ description: "The newest issue that the person has seen: newer ones stay open." }),
    reason: reasonSchema,
  })
  .meta({
    id: "CloseIssues",
    examples: [
      { filter: { kind: "rounding", account: "provider:1" }, through_id: 42, reason: "Rounding of the provider." },
    ],
  });

const undoClosingsBodySchema = z
  .strictObject({
    issue_ids: z
      .array(idSchema)
      .min(1)
      .max(BOUNDS.issuesClosedAtOnce)
      .meta({ description: "For example the `closed_ids` of a closing by a filter." }),
  })
  .meta({ id: "UndoIssueClosings", examples: [{ issue_ids: [41, 42] }] });

const refusedSchema = z.array(z.object({ issue_id: idSchema, reason: z.string() }));
const bulkClosingSchema = z
  .object({
    closed_ids: z.array(idSchema).meta({ description: "The issues that were closed." }),
    refused: refusedSchema.meta({
      description: "The issues that cannot be closed now, each with the `reason` of its refusal.",
    }),
    has_more: z.boolean().meta({ description: "Whether more issues match the filter: repeat the request." }),
  })
  .meta({ id: "IssuesClosed" });
const bulkUndoingSchema = z
  .object({
    reopened: z.int().meta({ description: "How many are open or assigned now, also those that were before." }),
    refused: refusedSchema.meta({
      description: "The issues that stay as they are, each with the `reason` of its refusal.",
    }),
    remaining_ids: z
      .array(idSchema)
      .meta({ description: "The request had no time for these: send them again. Mostly empty." }),
  })
  .meta({ id: "IssueClosingsUndone" });

/** For the descriptions of several operations. */
export const ISSUE_CONFLICT_DESCRIPTION = `The \`reason\` of a \`conflict\` is one of ${bus.ISSUE_CONFLICTS.map((word) => `\`${word}\``).join(", ")}. When the same person repeats the request with the same body, the answer is the same.`;

interface AmountFilter {
  readonly currency?: string | undefined;
  readonly min_amount?: string | undefined;
  readonly max_amount?: string | undefined;
}

/** Throws `invalid_request` for an amount that its currency cannot have. */
function amountsOf({ currency, min_amount, max_amount }: AmountFilter, at: string) {
  const minorOf = (name: string, text: string | undefined): string | undefined => {
    if (text === undefined) return undefined;
    const minor = currency === undefined ? undefined : parseAmount(text, currency);
    if (minor !== undefined) return minor.toString();
    const detail = "Must be an amount of `currency`, which must be given with it.";
    throw new ApiError("invalid_request", { errors: [{ pointer: `${at}/${name}`, code: "not_of_currency", detail }] });
  };
  return { currency, leastMinor: minorOf("min_amount", min_amount), mostMinor: minorOf("max_amount", max_amount) };
}

const ageOf = (days: number | undefined): number | undefined => (days === undefined ? undefined : days * DAY_MS);

/** Throws `invalid_request` for an amount that its currency cannot have. */
export function issuesFilterOf(query: Omit<z.infer<typeof issuesQuerySchema>, "before_id" | "limit">) {
  const { status, kind, source, account, station_id, assignee_id, min_age_days, decision } = query;
  return {
    status,
    isUnresolved: decision === undefined ? undefined : decision === "pending",
    kind,
    source,
    accountKey: account,
    stationId: station_id,
    assigneeId: assignee_id,
    leastAgeMs: ageOf(min_age_days),
    ...amountsOf(query, ""),
  };
}

const listIssues: SessionHandler<undefined, z.infer<typeof issuesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const page = { beforeId: query.before_id, limit: query.limit };
  const { issues, hasMore } = await deps.bus.call(bus.listIssues, { caller, ...issuesFilterOf(query), ...page });
  const nowMs = deps.nowMs();
  return ok({ issues: issues.map((issue) => issueJson(issue, nowMs)), has_more: hasMore });
};

const getIssue: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const found = await deps.bus.call(bus.getIssue, { caller, issueId: context.id("issue_id") });
  return ok(issueDetailsJson(found, deps.nowMs()));
};

/** Errors: `not_found` (the issue, the person), `conflict` with a reason. */
const assignIssue: SessionHandler<z.infer<typeof assignIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, issueId: context.id("issue_id"), assigneeId: body.assignee_id };
  const { issue } = await deps.bus.call(bus.assignIssue, request);
  return ok(issueJson(issue, deps.nowMs()));
};

/** Errors: `not_found`, `conflict` with a reason. */
const commentIssue: SessionHandler<z.infer<typeof commentIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const issueId = context.id("issue_id");
  const creation = creationOf(context, "issue_comment", issueId);
  const request = { caller, issueId, text: body.text, creation };
  const { comment } = await deps.bus.call(bus.commentIssue, request);
  return created(commentJson(comment));
};

/** Errors: `not_found`, `conflict` with a reason, and those of the payment seam. */
const attributeIssue: SessionHandler<z.infer<typeof attributeIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, issueId: context.id("issue_id"), orderId: body.order_id, reason: body.reason };
  const { issue } = await deps.bus.call(bus.attributeIssue, request);
  return ok(issueJson(issue, deps.nowMs()));
};

/** Errors: `not_found`, `conflict` with a reason. */
const closeIssue: SessionHandler<z.infer<typeof closeIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const issueId = context.id("issue_id");
  const request = { caller, issueId, reason: body.reason, evidenceHash: body.evidence_hash };
  const { issue } = await deps.bus.call(bus.closeIssue, request);
  return ok(issueJson(issue, deps.nowMs()));
};

const closeIssues: SessionHandler<z.infer<typeof closeIssuesBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { status, kind, source, account, station_id, assignee_id, min_age_days } = body.filter;
  const { closedIds, refused, hasMore } = await deps.bus.call(bus.closeIssues, {
    caller,
    filter: {
      status,
      kind,
      source,
      accountKey: account,
      stationId: station_id,
      assigneeId: assignee_id,
      leastAgeMs: ageOf(min_age_days),
      ...amountsOf(body.filter, "/filter"),
    },
    throughId: body.through_id,
    reason: body.reason,
  });
  return ok({ closed_ids: closedIds, refused: refused.map(refusedJson), has_more: hasMore });
};

const refusedJson = ({ issueId, reason }: { readonly issueId: number; readonly reason: string }) => ({
  issue_id: issueId,
  reason,
});

/** Errors: `not_found`, `conflict` with a reason. */
const undoIssueClosing: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { issue } = await deps.bus.call(bus.undoIssueClosing, { caller, issueId: context.id("issue_id") });
  return ok(issueJson(issue, deps.nowMs()));
};

const undoIssueClosings: SessionHandler<z.infer<typeof undoClosingsBodySchema>> = async ({ caller, deps, body }) => {
  const request = { caller, issueIds: body.issue_ids };
  const { reopened, refused, remainingIds } = await deps.bus.call(bus.undoIssueClosings, request);
  return ok({ reopened, refused: refused.map(refusedJson), remaining_ids: remainingIds });
};

const issues = "/api/reconciliation/v1/issues/" as const;
const issue = `${issues}{issue_id}` as const;
export const issueReply = { 200: { description: "The issue after the change.", schema: issueSchema } };

export const issueRoutes = [
  reconciliationRoute({
    method: "GET",
    path: issues,
    operation: "listIssues",
    summary: "List the issues",
    description:
      "The kind of an issue says what differs, in a provider's callback or in a statement. An issue never pays an order by itself.",
    query: issuesQuerySchema,
    replies: { 200: { description: "Newest first.", schema: issuesSchema } },
    handler: listIssues,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${issue}/`,
    operation: "getIssue",
    summary: "Read an issue with its history",
    description: "The issue with its comments, the steps of people and of the service, and its earlier evidence.",
    replies: { 200: { description: "The issue and its history.", schema: issueDetailsSchema } },
    errors: ["not_found"],
    handler: getIssue,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${issue}/assign/`,
    operation: "assignIssue",
    summary: "Assign an issue to a person",
    description: `The person must be an active reconciliation operator of the organization. ${ISSUE_CONFLICT_DESCRIPTION}`,
    body: assignIssueBodySchema,
    replies: issueReply,
    errors: ["not_found", "conflict"],
    handler: assignIssue,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${issue}/comments/`,
    operation: "commentIssue",
    summary: "Write a comment on an issue",
    description: "A decided issue can have new comments too. A comment cannot be changed or deleted.",
    headers: creationHeaderSchema,
    body: commentIssueBodySchema,
    replies: { 201: { description: "The comment.", schema: issueCommentSchema } },
    errors: ["not_found", "conflict", "idempotency_key_reused"],
    handler: commentIssue,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${issue}/attribute/`,
    operation: "attributeIssue",
    summary: "Pay an order with an issue's payment",
    description: `Pays the order through the payment seam. The payment must have the amount and the currency of the order. The order must be unpaid, without a collection under way, and of the filial whose account has the payment. A payment pays only one order. Above the organization's limit, the reason is \`second_person_needed\`: propose the attribution instead. ${ISSUE_CONFLICT_DESCRIPTION}`,
    body: attributeIssueBodySchema,
    replies: issueReply,
    errors: ["not_found", "conflict", "order_unknown", "order_already_paid", "order_changed", "order_voided"],
    handler: attributeIssue,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${issue}/close/`,
    operation: "closeIssue",
    summary: "Close an issue that was resolved elsewhere",
    description: `For a payment that was paid back, or that another system accounts for. The audit log keeps the reason. The payment can no longer pay an order. ${ISSUE_CONFLICT_DESCRIPTION}`,
    body: closeIssueBodySchema,
    replies: issueReply,
    errors: ["not_found", "conflict"],
    handler: closeIssue,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${issue}/undo/`,
    operation: "undoIssueClosing",
    summary: "Undo the closing of an issue",
    description: `Only the person who closed the issue can undo this, within a day, while its period is not closed and no newer issue replaces it. The issue is then open or assigned, as before. An open issue does not change. ${ISSUE_CONFLICT_DESCRIPTION}`,
    replies: issueReply,
    errors: ["not_found", "conflict"],
    handler: undoIssueClosing,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${issues}close/`,
    operation: "closeIssues",
    summary: "Close the issues that match a filter",
    description: `Closes the oldest ${BOUNDS.issuesClosedAtOnce} issues that match and wait for a decision when the request begins, each like a single closing. The answer names the issues that cannot be closed. The payment of a closed issue can no longer pay an order.`,
    body: closeIssuesBodySchema,
    replies: { 200: { description: "What was closed.", schema: bulkClosingSchema } },
    handler: closeIssues,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${issues}undo/`,
    operation: "undoIssueClosings",
    summary: "Undo the closings of several issues",
    description:
      "Reopens each of the issues like a single undo. One that is refused does not keep the others closed. The same request again has the same answer: an open issue does not change.",
    body: undoClosingsBodySchema,
    replies: { 200: { description: "What was reopened.", schema: bulkUndoingSchema } },
    handler: undoIssueClosings,
  }),
];
