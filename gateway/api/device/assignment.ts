/**
 * The collection of a companion: the companion fetches it as an assignment, runs its payment application, and reports
 * evidence (contract, "GET assignment", "POST assignment/report").
 */
import { z } from "zod";
import { isEnded, type PaymentIntent, type Report } from "../../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import type { BlockedReason } from "../../../machines/standing.ts";
import { assignmentView } from "../../../machines/views/assignment.ts";
import { UnavailableError } from "../../../services/bus/refusals.ts";
import { reportCommandId } from "../../http/command-id.ts";
import { conditionalHeaderSchema, etagHeaderSchema, unchanged } from "../../http/conditional.ts";
import {
  ApiError,
  type DeviceContext,
  type DeviceHandler,
  freshView,
  ok,
  type Reply,
  type StationCommandRequest,
} from "../../http/handler-context.ts";
import { device, deviceForwardedBlocked, poll, route } from "../../http/route.ts";
import { amountSchema, currencySchema, idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";
import { etagOf } from "../../read-model/etag.ts";
import { serverTime } from "../../read-model/polls.ts";
import { TAIL } from "../../read-model/rendered.ts";
import { INTENT_ID_DESCRIPTION, intentStatusSchema, outcomeSchema } from "../cashier/intent-json.ts";

const ASSIGNMENT_EXAMPLE = {
  intent_id: 7,
  intent_display_number: 3,
  order_display_number: 12,
  station_name: "Counter 1",
  amount: "25.00",
  currency: "EUR",
  status: "presented",
  handoff_target: "pay://collect",
  expires_at: "2026-11-20T12:03:00.000Z",
};
const assignmentSchema = z
  .object({
    intent_id: idSchema.meta({ description: INTENT_ID_DESCRIPTION }),
    intent_display_number: idSchema,
    order_display_number: idSchema,
    station_name: z.string(),
    amount: amountSchema,
    currency: currencySchema,
    status: intentStatusSchema.meta({ description: "Polls show `presented` and `processing` only." }),
    handoff_target: z.string(),
    expires_at: timestampSchema.meta({ description: "The real deadline. After it, the intent becomes `expired`." }),
  })
  .meta({
    id: "Assignment",
    examples: [ASSIGNMENT_EXAMPLE],
  });

const assignmentReplySchema = z
  .object({
    assignment: assignmentSchema.nullable().meta({
      description: "Null when there is nothing to collect: none was handed to this device, or it has ended.",
    }),
    server_time: timestampSchema,
  })
  .meta({
    id: "AssignmentReply",
    examples: [
      { assignment: ASSIGNMENT_EXAMPLE, server_time: "2026-11-20T12:00:10.000Z" },
      { assignment: null, server_time: "2026-11-20T12:00:10.000Z" },
    ],
  });

const VERBATIM =
  "Stored unchanged, with any characters and any length that the body limit permits. Escape it before you display it: it may contain line breaks and characters that change the text direction.";

const reportBodySchema = z
  .looseObject({
    // Accepts any integer: the answer to a number that is no id is the same as to the id of another device's intent.
    intent_id: z.int().meta({
      description:
        "Must be assigned to this device; any other id, also 0 and below, is refused with `handoff_not_assigned`.",
      examples: [7],
    }),
    outcome: outcomeSchema,
    provider_reference: z
      .string()
      .optional()
      .meta({ description: `The payment application's reference; the attestation inherits it. ${VERBATIM}` }),
    provider_code: z
      .string()
      .optional()
      .meta({ description: `The coded result, for programs. ${VERBATIM}` }),
    client_idempotency_key: z.string().optional().meta({
      description:
        "Always send one. It is scoped to the device and the intent. A repetition under the same key returns the original report and the assignment as it was at that time. The other fields of a repetition are not recorded, so use a new key for new evidence. Any text is a valid key, compared exactly and in full; an empty one counts as none.",
    }),
  })
  .meta({
    id: "HandoffReport",
    examples: [
      {
        intent_id: 7,
        outcome: "reported_success",
        provider_reference: "RRN-000451",
        provider_code: "00",
        client_idempotency_key: "c1b7c7a2-7f0e-4a57-8f0e-0e6a3e7b9d11",
      },
    ],
  });

const REPORTED_EXAMPLE = {
  outcome: "reported_success",
  provider_reference: "RRN-000451",
  provider_code: "00",
  reported_at: "2026-11-20T12:01:10.000Z",
};
const reportedOutcomeSchema = z
  .object({
    outcome: outcomeSchema,
    provider_reference: z.string(),
    provider_code: z.string(),
    reported_at: timestampSchema,
  })
  .meta({ id: "ReportedOutcome", examples: [REPORTED_EXAMPLE] });

const reportReplySchema = z.object({ report: reportedOutcomeSchema, assignment: assignmentSchema }).meta({
  id: "HandoffReportReply",
  examples: [{ report: REPORTED_EXAMPLE, assignment: { ...ASSIGNMENT_EXAMPLE, status: "processing" } }],
});

/** Describes one exception: no tag matches an assignment that this fetch presents. */
const assignmentConditionSchema = z.object({
  "If-None-Match": conditionalHeaderSchema.shape["If-None-Match"].meta({
    description:
      "The `ETag` of the last 200 answer, as it was received. Where it still is the current one, the answer is 304. A list of tags and `*` (any tag) work too, with one exception: an assignment that has not been fetched yet (its intent is `created`) is always answered 200, also for `*`, because this fetch presents it.",
    examples: ['W/"mJ0iXf3lM9vT2bQwZr5K"'],
  }),
});

/**
 * Answers the polls that memory cannot answer: the intent is still `created`, and this fetch presents it. No other read
 * by a device changes state (contract, "States and transitions").
 */
const fetchAssignment: DeviceHandler = async (context) => {
  const { deps, device: caller } = context;
  const view = deps.deviceView("assignment", caller);
  // Another fetch of the same device may have presented it meanwhile.
  if (view.presents === null) return answer(context, view.head, view.etag);
  const presented = await present(context, view.presents);
  const after = freshView(context, "assignment");
  if (after?.presents === null) return answer(context, after.head, after.etag);
  // The replica has not received the commit in time, so the device gets the state from the station's answer.
  const assignment = presented === null || isEnded(presented.status) ? null : assignmentView(presented);
  const text = JSON.stringify({ assignment });
  return answer(context, `${text.slice(0, -1)},"server_time":"`, etagOf(text));
};

/** The intent after the fetch; null when this device may no longer collect it. */
async function present(context: DeviceContext, intentId: number): Promise<PaymentIntent | null> {
  const { deps, device: caller } = context;
  try {
    const { intent } = await deps.bus.command(caller.stationId, {
      // All fetches of an intent by a device have the same id, so the station presents the intent to it once.
      commandId: `present:${caller.deviceId}:${intentId}`,
      actor: { kind: "device", id: caller.deviceId },
      command: { type: "intent_present", intentId },
    });
    return intent;
  } catch (error) {
    if (error instanceof ApiError && error.code === "handoff_not_assigned") return null;
    throw error;
  }
}

function answer(context: DeviceContext, head: string, etag: string): Reply {
  return { status: 200, ready: head + serverTime(context.deps.nowMs()) + TAIL, headers: { ETag: etag } };
}

/** A report is evidence, never truth (contract, "POST assignment/report"). */
const reportOutcome: DeviceHandler<z.infer<typeof reportBodySchema>> = async (context) => {
  const { deps, device: caller, body } = context;
  // The station refuses a blocked device with the reason of its block, and keeps the report as evidence.
  const { blocked } = deps.deviceView("self", caller);
  // No intent has such an id, so the gateway does not ask the station.
  if (body.intent_id < 1) throw new ApiError(blocked === "" ? "handoff_not_assigned" : (blocked as BlockedReason));
  const wait = blocked === "" ? {} : { timeoutMs: LIMITS.blockedReportMs };
  // The station gives the same answer for an unknown intent, another device's and another station's: `handoff_not_assigned`.
  const request: StationCommandRequest = {
    commandId: reportCommandId(caller.deviceId, body.intent_id, body.client_idempotency_key),
    actor: { kind: "device", id: caller.deviceId },
    command: {
      type: "intent_report",
      intentId: body.intent_id,
      outcome: body.outcome,
      providerReference: body.provider_reference ?? "",
      providerCode: body.provider_code ?? "",
      blockedReason: blocked === "" ? undefined : (blocked as BlockedReason),
    },
  };
  const asked = deps.bus.command(caller.stationId, request, wait);
  const { reply, intent } = await asked.catch((error: unknown) => {
    if (blocked === "" || !(error instanceof UnavailableError)) throw error;
    // The gateway refuses a blocked device also without the station's answer. The station may still store the report;
    // if it does not, only this log line has it.
    const { stationId, deviceId } = caller;
    const { intent_id: intentId, outcome, provider_reference: providerReference } = body;
    const report = { requestId: context.requestId, stationId, deviceId, intentId, outcome, providerReference };
    deps.log.warn({ err: error, blocked, ...report }, "the station may not have stored a blocked device's report");
    throw new ApiError(blocked as BlockedReason);
  });
  if (reply.type !== "report" || intent === null) throw new ApiError("handoff_not_assigned");
  return ok({ report: reportJson(reply.report), assignment: assignmentView(intent) });
};

function reportJson(report: Report) {
  return {
    outcome: report.outcome,
    provider_reference: report.providerReference,
    provider_code: report.providerCode,
    reported_at: toTimestamp(report.reportedAtMs),
  };
}

export const assignmentRoutes = [
  poll({
    method: "GET",
    path: "/api/payments/v1/devices/assignment/",
    operation: "fetchAssignment",
    operationId: "payments_device_assignment",
    tag: "device",
    summary: "Fetch the collection handed to this companion",
    description:
      "Fetching a fresh assignment records the intent as presented. A HEAD request, which is answered like the GET without a body, does not, and neither does an answer 304. Poll only between collections, every two seconds with the last ETag; a companion with an assignment calls again once it has reported. A poll shows `presented`, or `processing` once a report is recorded, until a cashier attests or cancels or the deadline passes; then `assignment` is null.",
    who: device("assignment:read"),
    headers: assignmentConditionSchema,
    replies: {
      200: {
        description: "The assignment, or null when there is nothing to collect.",
        schema: assignmentReplySchema,
        headers: etagHeaderSchema,
      },
      304: unchanged,
    },
    quiet: true,
    poll: "assignment",
    handler: fetchAssignment,
  }),
  route({
    method: "POST",
    path: "/api/payments/v1/devices/assignment/report/",
    operation: "reportOutcome",
    operationId: "payments_device_handoff_report",
    tag: "device",
    summary: "Report the outcome of the payment application",
    description: `A report is evidence and does not prove a payment: the intent becomes \`processing\` for every outcome, no transaction is made, and the order stays unpaid until a cashier attests. 409 with \`status\` \`expired\` means that the intent expired while the payment application was running; do not retry. A repetition under the same \`client_idempotency_key\` returns the original answer, with the assignment as it was at that time; new evidence needs a new key. A blocked device gets 403 with the reason of its standing. Its report about its collection is still stored as evidence. Once the block ends, a repetition of the report under the same key is accepted, unless the intent has ended. After the intent has ended, or while the device is blocked, the station keeps at most ${STATE_LIMITS.lateEvidencePerIntent} different reports of each kind (successes, unknown outcomes and others) as evidence about the intent, and one more success whenever the cashier must confirm again because of it. The report counts towards the request limit like every other request, so reserve one request for it.`,
    who: deviceForwardedBlocked("assignment:report"),
    body: reportBodySchema,
    unstorableText: "kept",
    replies: {
      200: {
        description: "The recorded report and the assignment; for a repetition, both as in the original answer.",
        schema: reportReplySchema,
      },
    },
    errors: ["handoff_not_assigned", "intent_not_actionable", "busy"],
    handler: reportOutcome,
  }),
];
