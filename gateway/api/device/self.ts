/** The device's snapshot: the device reads it, and gets it as the answer to a heartbeat (contract, "POST heartbeat"). */
import { z } from "zod";
import { type DeviceHandler, freshView } from "../../http/handler-context.ts";
import { deviceEvenBlocked, poll, route } from "../../http/route.ts";
import { idSchema, timestampSchema } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";
import { serverTime } from "../../read-model/polls.ts";
import { TAIL } from "../../read-model/rendered.ts";
import {
  blockedReasonSchema,
  CAPABILITIES_DESCRIPTION,
  capabilitySchema,
  deviceKindSchema,
  deviceStatusSchema,
} from "../backoffice/devices.ts";
import { stationStatusSchema } from "../backoffice/stations.ts";

export const SNAPSHOT_EXAMPLE = {
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

/** The depth of a nested value. Text and numbers have depth 0. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Object.values(value).reduce((deepest: number, inner: unknown) => Math.max(deepest, depthOf(inner)), 0);
}

const heartbeatBodySchema = z
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

/**
 * Answers once the heartbeat is stored. The snapshot comes from memory. It is read before, too: with a stale replica, this
 * request fails while nothing is done, and a replica that becomes stale meanwhile does not hide that the heartbeat is stored.
 */
const sendHeartbeat: DeviceHandler<z.infer<typeof heartbeatBodySchema>> = async (context) => {
  const { deps, device, body } = context;
  const before = deps.deviceView("self", device);
  await deps.bus.heartbeat(device, { atMs: deps.nowMs(), summary: body.summary ?? {} });
  const { head } = freshView(context, "self") ?? before;
  return { status: 200, ready: head + serverTime(deps.nowMs()) + TAIL };
};

export const selfRoutes = [
  route({
    method: "POST",
    path: "/api/payments/v1/devices/heartbeat/",
    operation: "sendHeartbeat",
    operationId: "payments_device_heartbeat",
    tag: "device",
    summary: "Report that the device is alive",
    description:
      "Call every ten seconds, also while a collection is under way; a device that is silent for 25 seconds counts as offline, and the routes that need it are withdrawn until its next heartbeat. In a form, `summary` carries JSON text. A blocked device gets an answer too, so that it can show why it is blocked.",
    who: deviceEvenBlocked("device:heartbeat"),
    body: heartbeatBodySchema,
    bodyOptional: true,
    // The summary never reaches PostgreSQL, and a device may not know how its text was cut.
    unstorableText: "kept",
    formJsonField: "summary",
    replies: { 200: { description: "The device's snapshot.", schema: deviceSnapshotSchema } },
    quiet: true,
    handler: sendHeartbeat,
  }),
  poll({
    method: "GET",
    path: "/api/payments/v1/devices/me/",
    operation: "getDeviceSelf",
    operationId: "payments_device_self",
    tag: "device",
    summary: "Read the device's snapshot",
    description: "A blocked device gets an answer too; `blocked_reason` has the reason of the block.",
    who: deviceEvenBlocked("device:read"),
    replies: { 200: { description: "The device's snapshot.", schema: deviceSnapshotSchema } },
    poll: "self",
  }),
];
