/** One-time enrollment codes of a device: issue, list, revoke. */
import type { z } from "zod";
import {
  issueEnrollmentCode,
  listEnrollmentCodes,
  revokeEnrollmentCode,
} from "../../../services/bus/messages/enrollment-codes.ts";
import type { enrollmentCodesQuerySchema, issueCodeBodySchema } from "../../contract/backoffice.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { enrollmentCodeWire } from "./code-wire.ts";

/** The code is in this answer only; it revokes an older open one. Refusal: `conflict` when the device cannot enroll. */
export const issueCode: SessionHandler<z.infer<typeof issueCodeBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const lifetimeMs = body.lifetime_seconds === undefined ? undefined : body.lifetime_seconds * 1_000;
  const deviceId = context.id("device_id");
  const { code, enrollmentCode } = await deps.bus.call(issueEnrollmentCode, { caller, deviceId, lifetimeMs });
  return created({ code, enrollment_code: enrollmentCodeWire(enrollmentCode) });
};

export const listCodes: SessionHandler<undefined, z.infer<typeof enrollmentCodesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { before_id: beforeId, limit } = query;
  const request = { caller, deviceId: context.id("device_id"), beforeId, limit };
  const { enrollmentCodes, hasMore } = await deps.bus.call(listEnrollmentCodes, request);
  return ok({ enrollment_codes: enrollmentCodes.map(enrollmentCodeWire), has_more: hasMore });
};

/** Refusal: `conflict` for a code that is no longer open. */
export const revokeCode: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { enrollmentCode } = await deps.bus.call(revokeEnrollmentCode, { caller, codeId: context.id("code_id") });
  return ok(enrollmentCodeWire(enrollmentCode));
};
