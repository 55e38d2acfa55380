/**
 * Devices, as their owner registered them. All operations need `organization.manage`. Another organization's id is
 * `not_found`.
 */
import { z } from "zod";
import { DEVICE_STATUSES } from "../../../machines/standing.ts";
import { CAPABILITIES, DEVICE_KINDS } from "../../../machines/station/state.ts";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { barrierSchema, callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";
import { nameSchema as name } from "./name.ts";
import { deviceDescriptionSchema } from "./station-commands.ts";

const id = z.int().positive();
const handoffTarget = z.string().max(BOUNDS.handoffTargetCharacters);

/** The fields that the station's actor gets, and the fields that only the registry has. */
export const deviceSchema = deviceDescriptionSchema.omit({ revision: true }).extend({
  stationId: id,
  createdAtMs: z.number(),
  /** When the device last claimed a code; null before its first claim. */
  enrolledAtMs: z.number().nullable(),
});
export type Device = z.infer<typeof deviceSchema>;

const deviceReply = z.object({ device: deviceSchema, barrier: barrierSchema });
const capabilities = z.array(z.enum(CAPABILITIES)).max(CAPABILITIES.length);
/** By id; devices of all statuses and stations, unless the request has one. */
export const listDevices = repeatable(
  "registry.listDevices",
  z.object({ caller, stationId: id.optional(), status: z.enum(DEVICE_STATUSES).optional(), ...pageAfter }),
  z.object({ devices: z.array(deviceSchema), hasMore: z.boolean() }),
);
/** A device with its last heartbeat; null when it has sent none. */
export const getDevice = repeatable(
  "registry.getDevice",
  z.object({ caller, deviceId: id }),
  z.object({
    device: deviceSchema,
    lastHeartbeat: z.object({ atMs: z.number(), summary: z.record(z.string(), z.unknown()) }).nullable(),
  }),
);
/**
 * Registers a device, which is pending. Without `capabilities` it has those of its kind. `handoffTarget` is for a smart
 * POS companion. Refuses with `invalid_request`, with `conflict` at a closed station, and with `device_limit_reached`.
 */
export const registerDevice = once(
  "registry.registerDevice",
  z.object({
    caller,
    stationId: id,
    name,
    kind: z.enum(DEVICE_KINDS),
    capabilities: capabilities.optional(),
    handoffTarget: handoffTarget.optional(),
    creation: creation.optional(),
  }),
  deviceReply,
);
/** Changes the fields in the request. Refuses with `conflict` for a revoked device. */
export const changeDevice = once(
  "registry.changeDevice",
  z.object({
    caller,
    deviceId: id,
    name: name.optional(),
    capabilities: capabilities.optional(),
    handoffTarget: handoffTarget.optional(),
  }),
  deviceReply,
);
/**
 * RESET revokes the credential and the codes, and the device must enroll again. REVOKE is final. For a device that
 * already has the status it changes nothing. Refuses with `conflict` when the device's state machine does not allow the
 * move.
 */
export const moveDevice = once(
  "registry.moveDevice",
  z.object({ caller, deviceId: id, move: z.enum(["SUSPEND", "RESUME", "RESET", "REVOKE"]) }),
  deviceReply,
);
