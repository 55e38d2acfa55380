import type { Transaction } from "../db/pool.ts";
import { hashEnrollmentCode, mintEnrollmentCode } from "./secrets/enrollment-code.ts";
import type { DeviceRow } from "./sql/devices.ts";
import { type EnrollmentCodeRow, insertEnrollmentCode, revokeUnspentCodes } from "./sql/enrollment-codes.ts";
import { type RegistryActor, recordEvent } from "./sql/registry-events.ts";

export interface CodeOrder {
  /** The key of the code's hash, if the operator set one. */
  readonly key: string | undefined;
  /** Pending, and held by the transaction. */
  readonly device: DeviceRow;
  readonly validForMs: number;
  readonly actor: RegistryActor;
}

/** Voids what code the device has and makes a new one, returned in its canonical form. */
export async function issueCode(
  tx: Transaction,
  { key, device, validForMs, actor }: CodeOrder,
): Promise<{ readonly code: string; readonly row: EnrollmentCodeRow }> {
  const code = mintEnrollmentCode();
  const { device_id: deviceId, organization_id: organizationId } = device;
  await revokeUnspentCodes(tx, deviceId);
  const row = await insertEnrollmentCode(tx, {
    organizationId,
    deviceId,
    hash: hashEnrollmentCode(code, key),
    validForMs,
    createdBy: actor.kind === "user" ? actor.id : null,
  });
  const subject = { kind: "enrollment_code", id: row.code_id } as const;
  const data = { device_id: deviceId, expires_at: row.expires_at };
  await recordEvent(tx, { organizationId, actor, action: "enrollment_code_issued", subject, data });
  return { code, row };
}
