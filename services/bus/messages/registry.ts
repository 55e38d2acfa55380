/**
 * People, places and devices. Every list is of the caller's organization and comes in pages, which may be shorter than
 * `limit` although there are more; a foreign id is `not_found`.
 */
import { z } from "zod";
import { DEVICE_STATUSES, STATION_STATUSES } from "../../../machines/standing.ts";
import { CAPABILITIES, DEVICE_KINDS } from "../../../machines/station/state.ts";
import { BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { actorSchema, barrierSchema, callerSchema, permissionSchema, roleSchema, USER_STATUSES } from "./caller.ts";
import { nameSchema as name } from "./name.ts";

const id = z.int().positive();
const handoffTarget = z.string().max(BOUNDS.handoffTargetCharacters);
/** A password that is set, unlike one that is tried. */
export const newPassword = z.string().min(BOUNDS.passwordCharacters.min).max(BOUNDS.passwordCharacters.max);
const caller = callerSchema;
const hasMore = z.boolean();

export const filialSchema = z.object({ filialId: id, name: z.string(), createdAtMs: z.number() });
export const stationSchema = z.object({
  stationId: id,
  filialId: id,
  name: z.string(),
  currency: z.string(),
  status: z.enum(STATION_STATUSES),
  sandbox: z.boolean(),
  createdAtMs: z.number(),
});
export type Station = z.infer<typeof stationSchema>;
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
export const enrollmentCodeSchema = z.object({
  codeId: id,
  deviceId: id,
  status: z.enum(["open", "spent", "expired", "revoked"]),
  expiresAtMs: z.number(),
  createdAtMs: z.number(),
});
export const userSchema = z.object({
  userId: id,
  email: z.string(),
  name: z.string(),
  role: roleSchema,
  permissions: z.array(permissionSchema),
  status: z.enum(USER_STATUSES),
});

// Sessions. The token is returned once; only its SHA-256 is stored. Who may not do what the session is for gets none.
export const login = defineOperation(
  "registry.session.login",
  "once",
  z.object({
    email: z.string().max(BOUNDS.emailCharacters),
    password: z.string().max(BOUNDS.passwordCharacters.max),
    address: z.string(),
    /** What the person wants to do; `permission_denied` without it. */
    permission: permissionSchema,
    /** What the browser is known by; opens nothing. */
    browserTokens: z.array(z.string().max(BOUNDS.browserTokenCharacters)).max(BOUNDS.browserTokens).optional(),
  }),
  z.object({
    token: z.string(),
    /** What the browser is known by from now on: one of those that were sent, or a new one. */
    browserToken: z.string(),
    expiresAtMs: z.number(),
    user: userSchema,
    organizationId: id,
    barrier: barrierSchema,
  }),
);
export const logout = defineOperation(
  "registry.session.logout",
  "repeatable",
  z.object({ caller, sessionId: id }),
  barrierSchema,
);

// Enrollment. Unknown, spent, expired, revoked and malformed codes all refuse with `enrollment_code_invalid` (I10).
export const enroll = defineOperation(
  "registry.enroll",
  "once",
  z.object({ code: z.string() }),
  z.object({
    credential: z.string(),
    scopes: z.array(z.string()),
    organizationId: id,
    /** As the claim left them: the answer must not depend on how far a replica has come, for it is given once. */
    device: deviceSchema,
    station: stationSchema,
    barrier: barrierSchema,
  }),
);

export const listFilials = defineOperation(
  "registry.filial.list",
  "repeatable",
  z.object({ caller, ...pageAfter }),
  z.object({ filials: z.array(filialSchema), hasMore }),
);
export const createFilial = defineOperation(
  "registry.filial.create",
  "once",
  z.object({ caller, name }),
  z.object({ filial: filialSchema }),
);

export const getFilial = defineOperation(
  "registry.filial.get",
  "repeatable",
  z.object({ caller, filialId: id }),
  z.object({ filial: filialSchema }),
);
export const renameFilial = defineOperation(
  "registry.filial.rename",
  "once",
  z.object({ caller, filialId: id, name }),
  z.object({ filial: filialSchema }),
);

const stationReply = z.object({ station: stationSchema, barrier: barrierSchema });
export const listStations = defineOperation(
  "registry.station.list",
  "repeatable",
  z.object({ caller, filialId: id.optional(), ...pageAfter }),
  z.object({ stations: z.array(stationSchema), hasMore }),
);
export const getStation = defineOperation(
  "registry.station.get",
  "repeatable",
  z.object({ caller, stationId: id }),
  z.object({ station: stationSchema }),
);
export const createStation = defineOperation(
  "registry.station.create",
  "once",
  z.object({ caller, filialId: id, name, currency: z.string().length(BOUNDS.currencyCharacters) }),
  stationReply,
);
export const renameStation = defineOperation(
  "registry.station.rename",
  "once",
  z.object({ caller, stationId: id, name }),
  stationReply,
);
/** Moves a station's standing. One that is as asked stays so; a step that its machine does not have is `conflict`. */
export const moveStation = defineOperation(
  "registry.station.move",
  "once",
  z.object({ caller, stationId: id, move: z.enum(["SUSPEND", "RESUME", "CLOSE"]) }),
  stationReply,
);

const deviceReply = z.object({ device: deviceSchema, barrier: barrierSchema });
const capabilities = z.array(z.enum(CAPABILITIES)).max(CAPABILITIES.length);
/** By id, of every status unless one is named. */
export const listDevices = defineOperation(
  "registry.device.list",
  "repeatable",
  z.object({ caller, stationId: id.optional(), status: z.enum(DEVICE_STATUSES).optional(), ...pageAfter }),
  z.object({ devices: z.array(deviceSchema), hasMore }),
);
/** The device and the summary of its last heartbeat, read from the LIVENESS stream; null when it was never heard. */
export const getDevice = defineOperation(
  "registry.device.get",
  "repeatable",
  z.object({ caller, deviceId: id }),
  z.object({
    device: deviceSchema,
    lastHeartbeat: z.object({ atMs: z.number(), summary: z.record(z.string(), z.unknown()) }).nullable(),
  }),
);
/** Capabilities left out are those of the kind. A smart POS companion carries a `handoffTarget`, which may be blank. */
export const registerDevice = defineOperation(
  "registry.device.register",
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
  "registry.device.change",
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
  "registry.device.move",
  "once",
  z.object({ caller, deviceId: id, move: z.enum(["SUSPEND", "RESUME", "RESET", "REVOKE"]) }),
  deviceReply,
);

/** The code is returned once, as XXXXX-XXXXX. A newer code of the same device revokes the open one. */
export const issueEnrollmentCode = defineOperation(
  "registry.code.issue",
  "once",
  z.object({
    caller,
    deviceId: id,
    lifetimeMs: z.int().min(BOUNDS.enrollmentCodeLifetimeMs.min).max(BOUNDS.enrollmentCodeLifetimeMs.max).optional(),
  }),
  z.object({ code: z.string(), enrollmentCode: enrollmentCodeSchema }),
);
/** Newest first. */
export const listEnrollmentCodes = defineOperation(
  "registry.code.list",
  "repeatable",
  z.object({ caller, deviceId: id, ...pageBefore }),
  z.object({ enrollmentCodes: z.array(enrollmentCodeSchema), hasMore }),
);
export const revokeEnrollmentCode = defineOperation(
  "registry.code.revoke",
  "repeatable",
  z.object({ caller, codeId: id }),
  z.object({ enrollmentCode: enrollmentCodeSchema }),
);

/** An e-mail address, by which a person logs in. */
export const email = z.email().max(BOUNDS.emailCharacters);
const userReply = z.object({ user: userSchema });
export const listUsers = defineOperation(
  "registry.user.list",
  "repeatable",
  z.object({ caller, ...pageAfter }),
  z.object({ users: z.array(userSchema), hasMore }),
);
export const createUser = defineOperation(
  "registry.user.create",
  "once",
  z.object({ caller, email, name, role: roleSchema, password: newPassword }),
  userReply,
);
export const REGISTRY_SUBJECTS = [
  "platform",
  "organization",
  "filial",
  "station",
  "device",
  "enrollment_code",
  "user",
  "session",
  "provider_config",
] as const;

/** One entry of the owner's audit trail: who did what to which thing, when. */
export const registryEventSchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: actorSchema,
  action: z.string(),
  /** The id is 0 for the platform. */
  subject: z.object({ kind: z.enum(REGISTRY_SUBJECTS), id: z.int().min(0) }),
  /** What changed; never a secret. */
  data: z.record(z.string(), z.unknown()),
});
export type RegistryEventEntry = z.infer<typeof registryEventSchema>;

/**
 * The registry's events of the caller's organization, and those of the platform: oldest first after `sinceId`; without
 * it newest first, before `beforeId` if that is given. Needs `organization.manage`.
 */
export const listRegistryEvents = defineOperation(
  "registry.events.list",
  "repeatable",
  z.object({ caller, ...pageAfter, ...pageBefore }),
  z.object({ events: z.array(registryEventSchema), hasMore }),
);

/**
 * Seeds the sandbox, idempotently: organization, filial, two stations with a companion and a display each, an owner, a
 * cashier, and a reconciliation operator when a password for one is given. Served on the bus only, for whoever operates the installation. Passwords and open codes are returned each
 * time the caller passes the ones to keep or they had to be made anew.
 */
export const seedSandbox = defineOperation(
  "registry.sandbox.seed",
  "repeatable",
  z.object({
    ownerPassword: newPassword,
    cashierPassword: newPassword,
    /** Without it there is no reconciliation operator, or the one that there is stays as it is. */
    operatorPassword: newPassword.optional(),
  }),
  z.object({
    organizationId: id,
    filialId: id,
    owner: z.object({ email: z.string() }),
    cashier: z.object({ email: z.string() }),
    operator: z.object({ email: z.string() }),
    stations: z.array(
      z.object({
        stationId: id,
        name: z.string(),
        devices: z.array(
          z.object({
            deviceId: id,
            name: z.string(),
            kind: z.enum(DEVICE_KINDS),
            /** A fresh code when the device still has to enroll, else null. */
            enrollmentCode: z.string().nullable(),
          }),
        ),
      }),
    ),
  }),
);
