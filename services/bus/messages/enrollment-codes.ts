/** One-time enrollment codes: the owner issues one for a pending device, and the device claims it. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { pageBefore } from "../page.ts";
import { barrierSchema, callerSchema as caller } from "./caller.ts";
import { deviceSchema } from "./devices.ts";
import { stationSchema } from "./stations.ts";

const id = z.int().positive();

export const enrollmentCodeSchema = z.object({
  codeId: id,
  deviceId: id,
  status: z.enum(["open", "spent", "expired", "revoked"]),
  expiresAtMs: z.number(),
  createdAtMs: z.number(),
});
export type EnrollmentCode = z.infer<typeof enrollmentCodeSchema>;

/**
 * Issues a code, as XXXXX-XXXXX, which only this reply has. Revokes the open code of the device. Refuses with
 * `conflict` for a device that is not pending, or at a closed station.
 */
export const issueEnrollmentCode = once(
  "registry.issueEnrollmentCode",
  z.object({
    caller,
    deviceId: id,
    lifetimeMs: z.int().min(BOUNDS.enrollmentCodeLifetimeMs.min).max(BOUNDS.enrollmentCodeLifetimeMs.max).optional(),
  }),
  z.object({ code: z.string(), enrollmentCode: enrollmentCodeSchema }),
);
/** Newest first. */
export const listEnrollmentCodes = repeatable(
  "registry.listEnrollmentCodes",
  z.object({ caller, deviceId: id, ...pageBefore }),
  z.object({ enrollmentCodes: z.array(enrollmentCodeSchema), hasMore: z.boolean() }),
);
/** Revokes a code. A revoked code does not change. Refuses with `conflict` for a spent or expired code. */
export const revokeEnrollmentCode = repeatable(
  "registry.revokeEnrollmentCode",
  z.object({ caller, codeId: id }),
  z.object({ enrollmentCode: enrollmentCodeSchema }),
);

/** Claims a code. Unknown, spent, expired, revoked and malformed codes all refuse with `enrollment_code_invalid` (I10). */
export const enrollDevice = once(
  "registry.enrollDevice",
  z.object({ code: z.string(), address: z.string() }),
  z.object({
    credential: z.string(),
    scopes: z.array(z.string()),
    organizationId: id,
    /**
     * The device and the station after the claim. The answer comes from the database, because the caller gets it only
     * once and a replica may lag.
     */
    device: deviceSchema,
    station: stationSchema,
    barrier: barrierSchema,
  }),
);
