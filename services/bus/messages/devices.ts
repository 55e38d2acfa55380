/** Devices as their owner registered them. A foreign id is `not_found`. */
import { z } from "zod";
import { DEVICE_STATUSES } from "../../../machines/standing.ts";
import { CAPABILITIES, DEVICE_KINDS } from "../../../machines/station/state.ts";
import { BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { barrierSchema, callerSchema as caller } from "./caller.ts";
import { nameSchema as name } from "./name.ts";

const id = z.int().positive();
const handoffTarget = z.string().max(BOUNDS.handoffTargetCharacters);

export const deviceSchema = z.object({
  deviceId: id,
  stationId: id,
  name: z.string(),
  kind: z.enum(DEVICE_KINDS),
  capabilities: z.array(z.enum(CAPABILITIES)),
  status: z.enum(DEVICE_STATUSES),
  handoffTarget: z.string(),
  createdAtMs: z.number(),
  /** When the device last claimed a code; null while it never has. */
  enrolledAtMs: z.number().nullable(),
});
export type Device = z.infer<typeof deviceSchema>;

const deviceReply = z.object({ device: deviceSchema, barrier: barrierSchema });
const capabilities = z.array(z.enum(CAPABILITIES)).max(CAPABILITIES.length);
/** By id, of every status unless one is named. */
export const listDevices = defineOperation(
  "registry.listDevices",
  "repeatable",
  z.object({ caller, stationId: id.optional(), status: z.enum(DEVICE_STATUSES).optional(), ...pageAfter }),
  z.object({ devices: z.array(deviceSchema), hasMore: z.boolean() }),
);
/** The device and the summary of its last heartbeat, read from the LIVENESS stream; null when it was never heard. */
export const getDevice = defineOperation(
  "registry.getDevice",
  "repeatable",
  z.object({ caller, deviceId: id }),
  z.object({
    device: deviceSchema,
    lastHeartbeat: z.object({ atMs: z.number(), summary: z.record(z.string(), z.unknown()) }).nullable(),
  }),
);
/** Capabilities left out are those of the kind. A smart POS companion carries a `handoffTarget`, which may be blank. */
export const registerDevice = defineOperation(
  "registry.registerDevice",
  "once",
  z.object({
    caller,
    stationId: id,
    name,
    kind: z.enum(DEVICE_KINDS),
    capabilities: capabilities.optional(),
    handoffTarget: handoffTarget.optional(),
  }),
  deviceReply,
);
export const changeDevice = defineOperation(
  "registry.changeDevice",
  "once",
  z.object({
    caller,
    deviceId: id,
    name: name.optional(),
    capabilities: capabilities.optional(),
    handoffTarget: handoffTarget.optional(),
  }),
  deviceReply,
);
/** SUSPEND, RESUME, RESET (revokes credential and codes; the device must enroll again), REVOKE (for good). One that is as asked stays so. */
export const moveDevice = defineOperation(
  "registry.moveDevice",
  "once",
  z.object({ caller, deviceId: id, move: z.enum(["SUSPEND", "RESUME", "RESET", "REVOKE"]) }),
  deviceReply,
);
