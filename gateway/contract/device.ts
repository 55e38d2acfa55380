/** The device API on the wire, exactly as the contract has it. Its request schemas are tolerant, its answers exact. */
import { z } from "zod";
import {
  blockedReasonSchema,
  CAPABILITIES_DESCRIPTION,
  capabilitySchema,
  deviceKindSchema,
  deviceStatusSchema,
} from "../api/backoffice/devices.ts";
import { stationStatusSchema } from "../api/backoffice/stations.ts";
import {
  deviceScopeSchema,
  displayScreenSchema,
  intentStatusSchema,
  outcomeSchema,
  shownIntentStatusSchema,
} from "../http/enums.ts";
import { amountSchema, currencySchema, idSchema, timestampSchema } from "../http/shared-schemas.ts";
import { LIMITS } from "../limits.ts";
import { INTENT_ID_DESCRIPTION } from "./intent.ts";

const CREDENTIAL_EXAMPLE = "dp_5c_wJ4Xx0Jr7h2m9V5n1q8s3t6u0y2a4c6e8g0i2k4m6o8";
const SCOPES_EXAMPLE = ["device:read", "device:heartbeat", "assignment:read", "assignment:report"];
const SNAPSHOT_EXAMPLE = {
  device_id: 5,
  name: "Counter tablet",
  kind: "smart_pos_companion",
  capabilities: ["handoff_present", "outcome_report"],
  status: "active",
  station_name: "Counter 1",
  station_status: "active",
  handoff_target: "pay://collect",
  blocked_reason: "",
  server_time: "2026-11-20T12:00:00.000Z",
};

export const deviceSnapshotSchema = z
  .object({
    device_id: idSchema,
    name: z.string(),
    kind: deviceKindSchema,
    capabilities: z.array(capabilitySchema).meta({ description: CAPABILITIES_DESCRIPTION }),
    status: deviceStatusSchema,
    station_name: z.string(),
    station_status: stationStatusSchema,
    handoff_target: z.string().meta({ description: "Opaque launch reference configured by the owner; may be blank." }),
    blocked_reason: blockedReasonSchema.meta({ description: "Why the device may not act; empty when it may." }),
    server_time: timestampSchema,
  })
  .meta({ id: "DeviceSnapshot", examples: [SNAPSHOT_EXAMPLE] });

/** Unknown fields are ignored: a device of tomorrow must be able to talk to a service of today. */
export const enrollBodySchema = z
  .looseObject({
    code: z
      .string()
      .meta({ description: "The one-time code; case and hyphen do not matter.", examples: ["7K3QX-9M2TB"] }),
  })
  .meta({ id: "Enroll", examples: [{ code: "7K3QX-9M2TB" }] });

export const enrollmentSchema = z
  .object({
    credential: z.string().meta({
      description: "The bearer credential; shown this once.",
      examples: [CREDENTIAL_EXAMPLE],
    }),
    scopes: z.array(deviceScopeSchema),
    device: deviceSnapshotSchema,
  })
  .meta({
    id: "Enrollment",
    examples: [{ credential: CREDENTIAL_EXAMPLE, scopes: SCOPES_EXAMPLE, device: SNAPSHOT_EXAMPLE }],
  });

/** How deep a value is nested; text and numbers are 0. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Object.values(value).reduce((deepest: number, inner: unknown) => Math.max(deepest, depthOf(inner)), 0);
}

export const heartbeatBodySchema = z
  .looseObject({
    summary: z
      .record(z.string(), z.unknown())
      .refine((summary) => Buffer.byteLength(JSON.stringify(summary)) <= LIMITS.summaryBytes, {
        error: `Larger than ${LIMITS.summaryBytes} bytes.`,
      })
      .refine((summary) => depthOf(summary) <= LIMITS.summaryDepth, {
        error: `Nested deeper than ${LIMITS.summaryDepth} levels.`,
      })
      .optional()
      .meta({
        description: "Anything the owner may want to see: version, battery, network. At most 4 KiB and 8 levels.",
      }),
  })
  .meta({ id: "Heartbeat", examples: [{ summary: { app_version: "4.2.0", battery_percent: 81 } }] });

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
export const assignmentSchema = z
  .object({
    intent_id: idSchema.meta({ description: INTENT_ID_DESCRIPTION }),
    intent_display_number: idSchema,
    order_display_number: idSchema,
    station_name: z.string(),
    amount: amountSchema,
    currency: currencySchema,
    status: intentStatusSchema.meta({ description: "Polls show `presented` and `processing` only." }),
    handoff_target: z.string(),
    expires_at: timestampSchema.meta({ description: "The real deadline; a lapsed intent becomes expired." }),
  })
  .meta({
    id: "Assignment",
    examples: [ASSIGNMENT_EXAMPLE],
  });

export const assignmentReplySchema = z
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
  "Kept verbatim, whatever characters it holds and as long as the body may be; escape it where people see it, because it may hold line breaks and marks that override the direction of text.";

export const reportBodySchema = z
  .looseObject({
    // Any integer is accepted, so that a number that cannot be an id gets the answer of an id that is not this device's.
    intent_id: z.int().meta({
      description:
        "Must be assigned to this device; any other id, also 0 and below, is refused with `handoff_not_assigned`.",
      examples: [7],
    }),
    outcome: outcomeSchema,
    provider_reference: z
      .string()
      .optional()
      .meta({ description: `The payment application's own reference; the attestation inherits it. ${VERBATIM}` }),
    provider_code: z
      .string()
      .optional()
      .meta({ description: `The coded result, for programs. ${VERBATIM}` }),
    client_idempotency_key: z.string().optional().meta({
      description:
        "Always send one. It is scoped to the device and the intent. A repetition under the same key answers with the original outcome and the assignment as it was then; whatever else it carries is not recorded, so use a new key for new evidence. Any text counts, whole and as it is.",
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
export const reportedOutcomeSchema = z
  .object({
    outcome: outcomeSchema,
    provider_reference: z.string(),
    provider_code: z.string(),
    reported_at: timestampSchema,
  })
  .meta({ id: "ReportedOutcome", examples: [REPORTED_EXAMPLE] });

export const reportReplySchema = z.object({ report: reportedOutcomeSchema, assignment: assignmentSchema }).meta({
  id: "HandoffReportReply",
  examples: [{ report: REPORTED_EXAMPLE, assignment: { ...ASSIGNMENT_EXAMPLE, status: "processing" } }],
});

export const displayStateSchema = z
  .object({
    state: displayScreenSchema,
    order_display_number: z.int().min(0).meta({ description: "0 in `idle`." }),
    amount: amountSchema.meta({ description: "`0.00` in `idle`." }),
    currency: currencySchema,
    qr_payload: z
      .string()
      .meta({ description: "A value only in `qr` and only for devices with `qr_dynamic_present`." }),
    intent_status: shownIntentStatusSchema,
    server_time: timestampSchema,
  })
  .meta({
    id: "DisplayState",
    examples: [
      {
        state: "total",
        order_display_number: 12,
        amount: "25.00",
        currency: "EUR",
        qr_payload: "",
        intent_status: "presented",
        server_time: "2026-11-20T12:00:00.000Z",
      },
    ],
  });

/** Polls with an entity tag (contract, "GET assignment", "GET display"). */
export const conditionalHeaderSchema = z.object({
  "If-None-Match": z
    .string()
    .optional()
    .meta({
      description:
        "The `ETag` of the last 200 answer, as it was received. Where it still is the current one, the answer is 304. A list of tags and `*` (any tag) work too.",
      examples: ['W/"mJ0iXf3lM9vT2bQwZr5K"'],
    }),
});
/** The assignment has one state that no tag matches. */
export const assignmentConditionSchema = z.object({
  "If-None-Match": conditionalHeaderSchema.shape["If-None-Match"].meta({
    description:
      "The `ETag` of the last 200 answer, as it was received. Where it still is the current one, the answer is 304. A list of tags and `*` (any tag) work too, with one exception: an assignment that has not been fetched yet (its intent is `created`) is always answered 200, also for `*`, because this fetch presents it.",
    examples: ['W/"mJ0iXf3lM9vT2bQwZr5K"'],
  }),
});
export const etagHeaderSchema = z.object({
  ETag: z.string().meta({ description: "Weak; `server_time` is left out of it." }),
});
