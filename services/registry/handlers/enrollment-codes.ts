import { BOUNDS } from "../../bus/bounds.ts";
import type {
  issueEnrollmentCode,
  listEnrollmentCodes,
  revokeEnrollmentCode,
} from "../../bus/messages/enrollment-codes.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { RegistryDeps } from "../deps.ts";
import { issueCode } from "../issue-code.ts";
import { REGISTRY_LIMITS } from "../limits.ts";
import { requirePermission } from "../permissions.ts";
import { showEnrollmentCode } from "../secrets/enrollment-code.ts";
import { findDevice, lockDevice } from "../sql/devices.ts";
import * as codes from "../sql/enrollment-codes.ts";
import { recordEvent, userActor } from "../sql/registry-events.ts";
import { findStation } from "../sql/stations.ts";
import { enrollmentCodeOnWire } from "../wire.ts";

/** Issues the one code that the device can claim; an earlier one is void from then on. */
export async function handleIssueEnrollmentCode(
  deps: RegistryDeps,
  { caller, deviceId, lifetimeMs }: RequestOf<typeof issueEnrollmentCode>,
): Promise<ReplyOf<typeof issueEnrollmentCode>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  return deps.sql.begin(async (tx) => {
    const device = await lockDevice(tx, organizationId, deviceId);
    if (device === undefined) throw new RefusedError({ code: "not_found" });
    if (device.status !== "pending") {
      const detail = `A code is for a pending device; this one is ${device.status}. Reset it to enroll it again.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const station = await findStation(tx, organizationId, device.station_id);
    if (station?.status === "closed") {
      throw new RefusedError({ code: "conflict", detail: "Nothing enrolls at a closed station." });
    }
    const { code, row, event } = await issueCode(tx, {
      key: deps.settings.ENROLLMENT_CODE_KEY,
      device,
      lifetimeMs: lifetimeMs ?? REGISTRY_LIMITS.enrollmentCodeLifetimeMs,
      actor: userActor(caller),
    });
    await recordEvent(tx, event);
    return { code: showEnrollmentCode(code), enrollmentCode: enrollmentCodeOnWire(row) };
  });
}

export async function handleListEnrollmentCodes(
  deps: RegistryDeps,
  { caller, deviceId, beforeId, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listEnrollmentCodes>,
): Promise<ReplyOf<typeof listEnrollmentCodes>> {
  requirePermission(caller, "organization.manage");
  const device = await findDevice(deps.sql, caller.organizationId, deviceId);
  if (device === undefined) throw new RefusedError({ code: "not_found" });
  const rows = await codes.listEnrollmentCodes(deps.sql, { deviceId, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(enrollmentCodeOnWire), limit);
  return { enrollmentCodes: page, hasMore };
}

/** Revokes an open code. A code that is revoked stays so; a spent or expired one is `conflict`. */
export async function handleRevokeEnrollmentCode(
  deps: RegistryDeps,
  { caller, codeId }: RequestOf<typeof revokeEnrollmentCode>,
): Promise<ReplyOf<typeof revokeEnrollmentCode>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  return deps.sql.begin(async (tx) => {
    const known = await codes.findEnrollmentCode(tx, organizationId, codeId);
    if (known === undefined) throw new RefusedError({ code: "not_found" });
    await lockDevice(tx, organizationId, known.device_id);
    // Read again under the lock: a claim may have spent it meanwhile.
    const before = await codes.findEnrollmentCode(tx, organizationId, codeId);
    if (before === undefined) throw new RefusedError({ code: "not_found" });
    if (before.status === "revoked") return { enrollmentCode: enrollmentCodeOnWire(before) };
    if (before.status !== "open") {
      throw new RefusedError({ code: "conflict", detail: `A code that is ${before.status} cannot be revoked.` });
    }
    await codes.revokeUnspentCodes(tx, before.device_id);
    const subject = { kind: "enrollment_code", id: codeId } as const;
    const data = { device_id: before.device_id };
    const actor = userActor(caller);
    await recordEvent(tx, { organizationId, actor, action: "enrollment_code_revoked", subject, data });
    return { enrollmentCode: enrollmentCodeOnWire({ ...before, status: "revoked" }) };
  });
}
