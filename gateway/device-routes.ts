/** The six operations of the device API (contract, "Endpoints"). */
import {
  assignmentConditionSchema,
  assignmentReplySchema,
  conditionalHeaderSchema,
  deviceSnapshotSchema,
  displayStateSchema,
  enrollBodySchema,
  enrollmentSchema,
  etagHeaderSchema,
  heartbeatBodySchema,
  reportBodySchema,
  reportReplySchema,
} from "./contract/device.ts";
import { enroll } from "./handlers/device/enroll.ts";
import { fetchAssignment } from "./handlers/device/fetch-assignment.ts";
import { heartbeat } from "./handlers/device/heartbeat.ts";
import { reportOutcome } from "./handlers/device/report-outcome.ts";
import { anyone, device, deviceEvenBlocked, deviceHeardBlocked, poll, type Route, route } from "./http/route.ts";

const unchanged = {
  description:
    "Unchanged: the `ETag` that was sent in `If-None-Match` still is the current one. No body, and not an error: keep what the last 200 answer said, and its `ETag`. It counts as a request of the throttle.",
  schema: null,
  headers: etagHeaderSchema,
};

export const deviceRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/api/payments/v1/devices/enroll/",
    operation: "enrollDevice",
    operationId: "payments_device_enroll",
    tag: "device",
    summary: "Claim an enrollment code",
    description:
      "The code is the secret of this anonymous call and is spent by it. Unknown, spent, expired, revoked and malformed codes answer identically. Throttled by client address.",
    who: anyone,
    body: enrollBodySchema,
    replies: { 201: { description: "The credential, shown this once.", schema: enrollmentSchema } },
    errors: ["enrollment_code_invalid", "throttled", "replica_stale"],
    awaitsEffect: true,
    handler: enroll,
  }),
  route({
    method: "POST",
    path: "/api/payments/v1/devices/heartbeat/",
    operation: "sendHeartbeat",
    operationId: "payments_device_heartbeat",
    tag: "device",
    summary: "Say that the device is alive",
    description:
      "Call every ten seconds, also while a collection is under way; a device that is silent for 25 seconds counts as offline, and the routes that need it are withdrawn until its next heartbeat. In a form, `summary` carries JSON text. A blocked device is answered too, so that it can show why.",
    who: deviceEvenBlocked("device:heartbeat"),
    body: heartbeatBodySchema,
    bodyOptional: true,
    bodyTypes: ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"],
    replies: { 200: { description: "The device's own snapshot.", schema: deviceSnapshotSchema } },
    errors: [],
    quiet: true,
    handler: heartbeat,
  }),
  poll({
    method: "GET",
    path: "/api/payments/v1/devices/me/",
    operation: "getDeviceSelf",
    operationId: "payments_device_self",
    tag: "device",
    summary: "Read the device's own snapshot",
    description: "A blocked device is answered too; `blocked_reason` says why it is blocked.",
    who: deviceEvenBlocked("device:read"),
    replies: { 200: { description: "The device's own snapshot.", schema: deviceSnapshotSchema } },
    errors: [],
    poll: "self",
  }),
  poll({
    method: "GET",
    path: "/api/payments/v1/devices/assignment/",
    operation: "fetchAssignment",
    operationId: "payments_device_assignment",
    tag: "device",
    summary: "Fetch the collection handed to this companion",
    description:
      "Fetching a fresh assignment records the intent as presented. A HEAD request, which is answered like the GET without a body, does not, and neither does an answer 304. Poll only between collections, every two seconds with the last ETag; whoever has an assignment calls again once it has reported. A poll shows `presented`, or `processing` once a report is recorded, until a cashier attests or cancels or the deadline passes; then `assignment` is null.",
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
    errors: [],
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
    summary: "Report what the payment application said",
    description:
      "Evidence, never truth: the intent becomes `processing` whatever the outcome, no transaction is made and the order stays unpaid until a cashier attests. With 409 and `status` `expired` the intent lapsed while the payment application was running; do not retry. The answer to a repetition under the same `client_idempotency_key` is the original one, with the assignment as it was then; new evidence needs a new key. A blocked device gets 403 with the reason of its standing; what it says about its own collection is kept as evidence nevertheless, and is taken under the same key once the block is gone. The report counts as a request like every other: keep one in hand for it.",
    who: deviceHeardBlocked("assignment:report"),
    body: reportBodySchema,
    unstorableText: "kept",
    replies: {
      200: {
        description: "The report as it was recorded, and the assignment; for a repetition both as they were then.",
        schema: reportReplySchema,
      },
    },
    errors: ["handoff_not_assigned", "intent_not_actionable", "busy"],
    handler: reportOutcome,
  }),
  poll({
    method: "GET",
    path: "/api/payments/v1/devices/display/",
    operation: "getDisplay",
    operationId: "payments_device_display",
    tag: "device",
    summary: "Read what the customer display shows",
    description:
      "Poll around every two seconds with the last ETag. A collection under way comes first (`total`, or `qr`), then a payment just made (`paid`, for 8 seconds or until an order is opened or changed), then the open order (`total` with an empty `intent_status`), else `idle`.",
    who: device("display:read"),
    headers: conditionalHeaderSchema,
    replies: {
      200: { description: "What to show, verbatim.", schema: displayStateSchema, headers: etagHeaderSchema },
      304: unchanged,
    },
    errors: [],
    poll: "display",
  }),
];
