/** One issue with its history on the wire. */
import { z } from "zod";
import type * as bus from "../../../services/bus/messages/issues.ts";
import type { ReplyOf } from "../../../services/bus/operation.ts";
import { actorJson, exactAmountSchema, idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { actorSchema } from "../backoffice/events.ts";
import { amountText, issueJson, issueSchema } from "./issue-json.ts";

export const issueCommentSchema = z
  .object({
    comment_id: idSchema,
    author_id: idSchema,
    author_name: z.string(),
    text: z.string(),
    created_at: timestampSchema,
  })
  .meta({ id: "IssueComment" });
export const issueDetailsSchema = z
  .object({
    issue: issueSchema,
    comments: z.array(issueCommentSchema).meta({ description: "The oldest first." }),
    steps: z
      .array(
        z.object({
          event_id: idSchema,
          at: timestampSchema,
          actor: actorSchema,
          action: z.string().meta({ examples: ["issue_closed"] }),
          data: z
            .record(z.string(), z.unknown())
            .meta({ description: "What changed and why; `prior` is the state before." }),
        }),
      )
      .meta({ description: "Who did what, the oldest first, up to a limit; the audit log has all steps." }),
    prior_evidence: z
      .array(z.record(z.string(), z.unknown()))
      .meta({ description: "The earlier evidence, from before each change, the oldest first, up to a limit." }),
    alone_up_to: exactAmountSchema.nullable().meta({
      description:
        "One person may attribute up to this amount in the issue's currency; above it, one person proposes and another person confirms. Null when the issue has no currency.",
    }),
    orders: z
      .array(
        z.object({
          order_id: idSchema,
          order_display_number: idSchema.meta({ description: "The number that tills and displays show." }),
          station_id: idSchema,
        }),
      )
      .meta({ description: "The orders that the issue and its proposal name." }),
  })
  .meta({ id: "IssueDetails" });

export function issueDetailsJson(
  found: ReplyOf<typeof bus.getIssue>,
  nowMs: number,
): z.infer<typeof issueDetailsSchema> {
  const { currency } = found.issue;
  return {
    issue: issueJson(found.issue, nowMs),
    comments: found.comments.map(commentJson),
    steps: found.steps.map(({ eventId, atMs, actor, action, data }) => ({
      event_id: eventId,
      at: toTimestamp(atMs),
      actor: actorJson(actor),
      action,
      data,
    })),
    prior_evidence: found.priorEvidence,
    alone_up_to: amountText(found.aloneUpToMinor, currency),
    orders: found.orders.map(({ orderId, orderDisplayNumber, stationId }) => ({
      order_id: orderId,
      order_display_number: orderDisplayNumber,
      station_id: stationId,
    })),
  };
}

export function commentJson({ commentId, authorId, authorName, text, createdAtMs }: bus.IssueComment) {
  return {
    comment_id: commentId,
    author_id: authorId,
    author_name: authorName,
    text,
    created_at: toTimestamp(createdAtMs),
  };
}
