/** One-time enrollment codes of a device. Only the answer that issues a code shows it. */
import { z } from "zod";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as messages from "../../../services/bus/messages/enrollment-codes.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";

export const enrollmentCodeSchema = z
  .object({
    code_id: idSchema,
    device_id: idSchema,
    status: z.enum(["open", "spent", "expired", "revoked"]).meta({ id: "EnrollmentCodeStatus" }),
    expires_at: timestampSchema,
    created_at: timestampSchema,
  })
  .meta({ id: "EnrollmentCode" });
export const enrollmentCodesSchema = z.object({
  enrollment_codes: z.array(enrollmentCodeSchema),
  has_more: hasMoreBefore,
});
const querySchema = z.strictObject(pageBeforeQuery);
export const issueCodeBodySchema = z
  .strictObject({
    lifetime_seconds: z
      .int()
      .min(BOUNDS.enrollmentCodeLifetimeMs.min / 1_000)
      .max(BOUNDS.enrollmentCodeLifetimeMs.max / 1_000)
      .optional()
      .meta({ description: "Ten seconds (for a program that uses it at once) to one week; 15 minutes when left out." }),
  })
  .meta({ id: "IssueEnrollmentCode", examples: [{ lifetime_seconds: 900 }] });
/** The only answer that shows the code. */
export const issuedCodeSchema = z
  .object({
    code: z.string().meta({ examples: ["7K3QX-9M2TB"] }),
    enrollment_code: enrollmentCodeSchema,
  })
  .meta({ id: "IssuedEnrollmentCode" });

const enrollmentCodeJson = (code: messages.EnrollmentCode): z.infer<typeof enrollmentCodeSchema> => ({
  code_id: code.codeId,
  device_id: code.deviceId,
  status: code.status,
  expires_at: toTimestamp(code.expiresAtMs),
  created_at: toTimestamp(code.createdAtMs),
});

const listEnrollmentCodes: SessionHandler<undefined, z.infer<typeof querySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const request = { caller, deviceId: context.id("device_id"), beforeId: query.before_id, limit: query.limit };
  const { enrollmentCodes, hasMore } = await deps.bus.call(messages.listEnrollmentCodes, request);
  return ok({ enrollment_codes: enrollmentCodes.map(enrollmentCodeJson), has_more: hasMore });
};

const issueEnrollmentCode: SessionHandler<z.infer<typeof issueCodeBodySchema>> = async ({ caller, deps, body, id }) => {
  const lifetimeMs = body.lifetime_seconds === undefined ? undefined : body.lifetime_seconds * 1_000;
  const request = { caller, deviceId: id("device_id"), lifetimeMs };
  const { code, enrollmentCode } = await deps.bus.call(messages.issueEnrollmentCode, request);
  return created({ code, enrollment_code: enrollmentCodeJson(enrollmentCode) });
};

const revokeEnrollmentCode: SessionHandler = async ({ caller, deps, id }) => {
  const { enrollmentCode } = await deps.bus.call(messages.revokeEnrollmentCode, { caller, codeId: id("code_id") });
  return ok(enrollmentCodeJson(enrollmentCode));
};

export const enrollmentCodeRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/devices/{device_id}/enrollment-codes/",
    operation: "listEnrollmentCodes",
    summary: "List a device's enrollment codes",
    description: "The status of each code. Without `before_id`, the newest codes.",
    query: querySchema,
    replies: {
      200: { description: "Newest first; the codes themselves are never shown again.", schema: enrollmentCodesSchema },
    },
    errors: ["not_found"],
    handler: listEnrollmentCodes,
  }),
  backofficeRoute({
    method: "POST",
    path: "/api/backoffice/v1/devices/{device_id}/enrollment-codes/",
    operation: "issueEnrollmentCode",
    summary: "Issue an enrollment code",
    description: "A new code revokes the open code of the device.",
    body: issueCodeBodySchema,
    bodyOptional: true,
    replies: { 201: { description: "The code, shown only once.", schema: issuedCodeSchema } },
    errors: ["not_found", "conflict"],
    handler: issueEnrollmentCode,
  }),
  backofficeRoute({
    method: "POST",
    path: "/api/backoffice/v1/enrollment-codes/{code_id}/revoke/",
    operation: "revokeEnrollmentCode",
    summary: "Revoke an enrollment code",
    description:
      "An open code can no longer be claimed. This cannot be undone; issue another code instead. To block a device that has already claimed its code, reset the device.",
    replies: { 200: { description: "The code after the change.", schema: enrollmentCodeSchema } },
    errors: ["not_found", "conflict"],
    handler: revokeEnrollmentCode,
  }),
];
