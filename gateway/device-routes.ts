/** The six operations of the device API (contract, "Endpoints"). */
import {
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
import { anyone, device, deviceEvenBlocked, poll, type Route, route } from "./route.ts";

const unchanged = {
  description: "Nothing has changed since the ETag that was sent; no body.",
  schema: null,
  headers: etagHeaderSchema,
};

export const deviceRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/api/payments/v1/devices/enroll/",
    operationId: "payments_device_enroll",
    tag: "device",
    summary: "Claim an enrollment code",
    description:
      "The code is the secret of this anonymous call and is spent by it. Unknown, spent, expired, revoked and malformed codes answer identically. Throttled by client address.",
    who: anyone,
    body: enrollBodySchema,
    replies: { 201: { description: "The credential, shown this once.", schema: enrollmentSchema } },
    errors: ["enrollment_code_invalid", "throttled", "replica_stale"],
    handler: enroll,
  }),
  route({
    method: "POST",
    path: "/api/payments/v1/devices/heartbeat/",
    operationId: "payments_device_heartbeat",
    tag: "device",
    summary: "Say that the device is alive",
    description:
      "Call every ten seconds; a device that is silent for 25 seconds counts as offline, and the routes that need it are withdrawn. In a form, `summary` carries JSON text. A blocked device is answered too, so that it can show why.",
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
    operationId: "payments_device_assignment",
    tag: "device",
    summary: "Fetch the collection handed to this companion",
    description:
      "Fetching a fresh assignment records the intent as presented; an answer 304 or a HEAD request does not.",
    who: device("assignment:read"),
    headers: conditionalHeaderSchema,
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
    operationId: "payments_device_handoff_report",
    tag: "device",
    summary: "Report what the payment application said",
    description:
      "Evidence, never truth: the intent becomes `processing` whatever the outcome, no transaction is made and the order stays unpaid until a cashier attests. With 409 and `status` `expired` the intent lapsed while the payment application was running; do not retry.",
    who: device("assignment:report"),
    body: reportBodySchema,
    unstorableText: "kept",
    replies: { 200: { description: "The report as it was recorded, and the assignment.", schema: reportReplySchema } },
    errors: ["handoff_not_assigned", "intent_not_actionable", "busy"],
    handler: reportOutcome,
  }),
  poll({
    method: "GET",
    path: "/api/payments/v1/devices/display/",
    operationId: "payments_device_display",
    tag: "device",
    summary: "Read what the customer display shows",
    description: "Poll around every two seconds with the last ETag.",
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
