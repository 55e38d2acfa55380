/** One-time enrollment codes of a device: issue, list, revoke. */
import type { z } from "zod";
import {
  issueEnrollmentCode,
  listEnrollmentCodes,
  revokeEnrollmentCode,
} from "../../../services/bus/messages/registry.ts";
import type { issueCodeBodySchema } from "../../contract/backoffice.ts";
import { created, ok, type SessionHandler } from "../context.ts";
import { enrollmentCodeWire } from "./code-wire.ts";

/** The code is in this answer only; it revokes an older open one. Refusal: `conflict` when the device cannot enroll. */
export const issueCode: SessionHandler<z.infer<typeof issueCodeBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const validForMs = body.valid_for_seconds === undefined ? undefined : body.valid_for_seconds * 1_000;
  const deviceId = context.id("device_id");
  const { code, enrollmentCode } = await deps.bus.call(issueEnrollmentCode, { caller, deviceId, validForMs });
  return created({ code, enrollment_code: enrollmentCodeWire(enrollmentCode) });
};

export const listCodes: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { enrollmentCodes } = await deps.bus.call(listEnrollmentCodes, { caller, deviceId: context.id("device_id") });
  return ok({ enrollment_codes: enrollmentCodes.map(enrollmentCodeWire) });
};

/** Refusal: `conflict` for a code that is no longer open. */
export const revokeCode: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { enrollmentCode } = await deps.bus.call(revokeEnrollmentCode, { caller, codeId: context.id("code_id") });
  return ok(enrollmentCodeWire(enrollmentCode));
};
