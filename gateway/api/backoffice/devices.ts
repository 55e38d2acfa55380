/** Devices: the owner registers each for one station, which never changes. A device of another organization is answered `not_found`. */
import { z } from "zod";
import {
  BLOCKED_REASONS,
  blockedReason,
  DEVICE_STATUSES,
  type DeviceStandingEvent,
  NO_KILL_SWITCHES,
} from "../../../machines/standing.ts";
import { CAPABILITIES, DEVICE_KINDS, findDevice, type StationDevice } from "../../../machines/station/state.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as messages from "../../../services/bus/messages/devices.ts";
import { creationHeaderSchema, creationOf } from "../../http/command-id.ts";
import { created, type HandlerDeps, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery, pageOnWire, queryId, stationsOfList } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, nameSchema, optionalTimestamp, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";

export const deviceKindSchema = z.enum(DEVICE_KINDS).meta({ id: "DeviceKind" });
export const deviceStatusSchema = z.enum(DEVICE_STATUSES).meta({ id: "DeviceStatus" });
export const capabilitySchema = z.enum(CAPABILITIES).meta({ id: "Capability" });
/** The purpose of capabilities. They are no rights: those are the scopes. */
export const CAPABILITIES_DESCRIPTION =
  "The capabilities decide which routes are offered and whether a QR code is rendered. What a device may call is decided by the scopes of its kind.";
export const blockedReasonSchema = z
  .enum(["", ...BLOCKED_REASONS])
  .meta({ id: "BlockedReason", description: "Why the device or the station may not act; empty when it may." });

/** A device's presence at its station. The device's heartbeats decide it, not the owner. */
export const livenessSchema = z
  .object({
    online: z.boolean(),
    last_seen_at: timestampSchema.nullable().meta({
      description: "As of the last change between online and offline; heartbeats in between are not recorded.",
    }),
    since: timestampSchema.nullable().meta({
      description: "Since when it is online or offline, or since its reset; null when it was neither online nor reset.",
    }),
  })
  .meta({ id: "Liveness" });

const deviceShape = {
  device_id: idSchema,
  station_id: idSchema,
  name: z.string(),
  kind: deviceKindSchema,
  capabilities: z.array(capabilitySchema).meta({ description: CAPABILITIES_DESCRIPTION }),
  status: deviceStatusSchema,
  handoff_target: z.string().meta({ description: "An opaque text. The companion gets it unchanged." }),
  created_at: timestampSchema,
  enrolled_at: timestampSchema.nullable().meta({ description: "When it last claimed an enrollment code." }),
  blocked_reason: blockedReasonSchema,
  liveness: livenessSchema.nullable().meta({ description: "Null when the station does not have the device." }),
};
export const deviceSchema = z.object(deviceShape).meta({
  id: "Device",
  examples: [
    {
      device_id: 42,
      station_id: 1,
      name: "Counter tablet",
      kind: "customer_display",
      capabilities: ["display_total"],
      status: "suspended",
      handoff_target: "",
      created_at: "2026-11-20T12:00:00.000Z",
      enrolled_at: "2026-11-20T12:05:00.000Z",
      blocked_reason: "device_suspended",
      liveness: null,
    },
  ],
});
export const devicesSchema = z.object({ devices: z.array(deviceSchema), has_more: hasMoreAfter });
/** One device with its newest heartbeat. */
export const deviceDetailSchema = z
  .object({
    ...deviceShape,
    last_heartbeat: z
      .object({ at: timestampSchema, summary: z.record(z.string(), z.unknown()) })
      .nullable()
      .meta({ description: "Null when the device has sent none." }),
  })
  .meta({ id: "DeviceDetail" });
const querySchema = z.strictObject({
  station_id: queryId().optional().meta({
    description: "Only devices of this station, by its id in the list of stations; of all stations when left out.",
  }),
  status: deviceStatusSchema.optional().meta({ description: "Only devices of this status; all when left out." }),
  ...pageAfterQuery,
});

const capabilitiesSchema = z
  .array(capabilitySchema)
  .max(CAPABILITIES.length)
  .meta({ description: CAPABILITIES_DESCRIPTION });
const handoffTargetSchema = z
  .string()
  .max(BOUNDS.handoffTargetCharacters)
  .meta({ description: "The launch reference of the payment application on the same device; may be blank." });
const registerBodySchema = z
  .strictObject({
    station_id: idSchema,
    name: nameSchema,
    kind: deviceKindSchema,
    capabilities: capabilitiesSchema.optional().meta({
      description: `${CAPABILITIES_DESCRIPTION} When left out, the device has all capabilities of its kind.`,
    }),
    handoff_target: handoffTargetSchema.optional(),
  })
  .meta({
    id: "RegisterDevice",
    examples: [{ station_id: 1, name: "Counter tablet", kind: "smart_pos_companion", handoff_target: "pay://collect" }],
  });
const changeBodySchema = z
  .strictObject({
    name: nameSchema.optional(),
    capabilities: capabilitiesSchema.optional(),
    handoff_target: handoffTargetSchema.optional(),
  })
  .meta({ id: "ChangeDevice", examples: [{ name: "Counter tablet 2", handoff_target: "pay://collect" }] });

/** A device's presence, as its station committed it. */
export const livenessJson = (liveness: StationDevice["liveness"]): z.infer<typeof livenessSchema> => ({
  online: liveness.state === "online",
  last_seen_at: optionalTimestamp(liveness.lastSeenAtMs),
  since: optionalTimestamp(liveness.sinceMs),
});

/** A device in JSON, from the registry, with its presence from the station. Without the station, there is no presence. */
function deviceJson(
  device: messages.Device,
  state: ReturnType<HandlerDeps["station"]>,
  switches = NO_KILL_SWITCHES,
): z.infer<typeof deviceSchema> {
  const known = state === undefined ? undefined : findDevice(state, device.deviceId);
  return {
    device_id: device.deviceId,
    station_id: device.stationId,
    name: device.name,
    kind: device.kind,
    capabilities: device.capabilities,
    status: device.status,
    handoff_target: device.handoffTarget,
    created_at: toTimestamp(device.createdAtMs),
    enrolled_at: optionalTimestamp(device.enrolledAtMs),
    blocked_reason:
      state === undefined ? "" : blockedReason({ ...state, stationStatus: state.status, device }, switches),
    liveness: known === undefined ? null : livenessJson(known.liveness),
  };
}

/** A device with its presence from this gateway's replica. */
const joinedJson = (deps: Pick<HandlerDeps, "station" | "switches">, device: messages.Device) =>
  deviceJson(device, deps.station(device.stationId), deps.switches());

/** A device after a change. It has no presence while the replica of its station may be older than the change. */
const changedJson = (deps: HandlerDeps, device: messages.Device) =>
  deps.isFresh(device.stationId) ? joinedJson(deps, device) : deviceJson(device, undefined);

const listDevices: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({ caller, deps, query }) => {
  const { station_id: stationId, status, since_id: sinceId, limit } = query;
  const request = { caller, stationId, status, sinceId, limit };
  const found = await deps.bus.call(messages.listDevices, request);
  const known = { station: stationsOfList(deps), switches: () => deps.switches() };
  const json = found.devices.map((device) => joinedJson(known, device));
  const { page, hasMore } = pageOnWire(json, found.hasMore);
  return ok({ devices: page, has_more: hasMore });
};

const registerDevice: SessionHandler<z.infer<typeof registerBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { station_id: stationId, handoff_target: handoffTarget, name, kind, capabilities } = body;
  const creation = creationOf(context, "device");
  const request = { caller, stationId, name, kind, capabilities, handoffTarget, creation };
  const { device } = await deps.bus.call(messages.registerDevice, request);
  return created(changedJson(deps, device));
};

const getDevice: SessionHandler = async ({ caller, deps, id }) => {
  const { device, lastHeartbeat } = await deps.bus.call(messages.getDevice, { caller, deviceId: id("device_id") });
  const heartbeat =
    lastHeartbeat === null ? null : { at: toTimestamp(lastHeartbeat.atMs), summary: lastHeartbeat.summary };
  return ok({ ...joinedJson(deps, device), last_heartbeat: heartbeat });
};

const changeDevice: SessionHandler<z.infer<typeof changeBodySchema>> = async ({ caller, deps, body, id }) => {
  const { name, capabilities, handoff_target: handoffTarget } = body;
  const request = { caller, deviceId: id("device_id"), name, capabilities, handoffTarget };
  const { device } = await deps.bus.call(messages.changeDevice, request);
  return ok(changedJson(deps, device));
};

/** Without `CLAIM`, which the device itself causes with its enrollment code. */
const moveDevice =
  (move: Exclude<DeviceStandingEvent["type"], "CLAIM">): SessionHandler =>
  async ({ caller, deps, id }) => {
    const { device } = await deps.bus.call(messages.moveDevice, { caller, deviceId: id("device_id"), move });
    return ok(changedJson(deps, device));
  };

const DEVICE = "/api/backoffice/v1/devices/{device_id}";
const deviceReply = { 200: { description: "The device after the change.", schema: deviceSchema } };

export const backofficeDeviceRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/devices/",
    operation: "listDevices",
    summary: "List the devices",
    description: "The list includes revoked devices, unless the request has a `status`.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: devicesSchema } },
    errors: ["not_found"],
    handler: listDevices,
  }),
  backofficeRoute({
    method: "POST",
    path: "/api/backoffice/v1/devices/",
    operation: "registerDevice",
    summary: "Register a device",
    description:
      "A device has one station and one kind, and neither can change. The device must enroll before it can work: issue an enrollment code for it next.",
    headers: creationHeaderSchema,
    body: registerBodySchema,
    replies: { 201: { description: "The device; it is `pending` until it claims a code.", schema: deviceSchema } },
    errors: ["not_found", "device_limit_reached", "conflict", "idempotency_key_reused"],
    awaitsEffect: true,
    handler: registerDevice,
  }),
  backofficeRoute({
    method: "GET",
    path: `${DEVICE}/`,
    operation: "getDevice",
    summary: "Read a device with its newest heartbeat",
    description: "The heartbeat has the summary that the device sent about itself.",
    replies: { 200: { description: "The device.", schema: deviceDetailSchema } },
    errors: ["not_found"],
    handler: getDevice,
  }),
  backofficeRoute({
    method: "PATCH",
    path: `${DEVICE}/`,
    operation: "changeDevice",
    summary: "Change a device",
    description:
      "Only the fields in the request change. The device gets them with its next poll; a collection under way keeps its `handoff_target`. A revoked device cannot be changed.",
    body: changeBodySchema,
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: changeDevice,
  }),
  backofficeRoute({
    method: "POST",
    path: `${DEVICE}/suspend/`,
    operation: "suspendDevice",
    summary: "Suspend a device",
    description:
      "The device is blocked until it is resumed, and each refusal names the reason. It keeps its credential. A collection under way can still be attested.",
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveDevice("SUSPEND"),
  }),
  backofficeRoute({
    method: "POST",
    path: `${DEVICE}/resume/`,
    operation: "resumeDevice",
    summary: "Resume a device",
    description: "Ends a suspension; the device continues with its current credential.",
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveDevice("RESUME"),
  }),
  backofficeRoute({
    method: "POST",
    path: `${DEVICE}/reset/`,
    operation: "resetDevice",
    summary: "Reset a device",
    description:
      "Revokes the device's credential and codes, which cannot be undone. The device is `pending` until it enrolls with a new code. A repetition acts again: it also revokes a credential or a code that the device got after the first request.",
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveDevice("RESET"),
  }),
  backofficeRoute({
    method: "POST",
    path: `${DEVICE}/revoke/`,
    operation: "revokeDevice",
    summary: "Revoke a device",
    description:
      "Cannot be undone: the device's credential and codes end at once, and it cannot be reset or resumed. To use the device again, register it as a new device.",
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveDevice("REVOKE"),
  }),
];
