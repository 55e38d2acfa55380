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
 * The code is returned once, as XXXXX-XXXXX. It revokes the open code of the device. A device that is not pending, or is at
 * a closed station, is `conflict`.
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
/** A revoked code stays so; a spent or expired one is `conflict`. */
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
    /** As they are after the claim: the answer is given once, so it must not depend on how far a replica has come. */
    device: deviceSchema,
    station: stationSchema,
    barrier: barrierSchema,
  }),
);
