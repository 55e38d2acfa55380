import type { Transaction } from "../db/pool.ts";
import { hashEnrollmentCode, mintEnrollmentCode } from "./secrets/enrollment-code.ts";
import type { DeviceRow } from "./sql/devices.ts";
import { type EnrollmentCodeRow, insertEnrollmentCode, revokeUnspentCodes } from "./sql/enrollment-codes.ts";
import { OPERATOR, type RegistryActor, type RegistryEvent } from "./sql/registry-events.ts";

export interface CodeOrder {
  /** The key of the code's hash, if the operator set one. */
  readonly key: string | undefined;
  /** Pending, and held by the transaction. */
  readonly device: DeviceRow;
  readonly lifetimeMs: number;
  readonly actor: RegistryActor;
}

/** Voids what code the device has and makes a new one, returned in its canonical form with the event to be recorded. */
export async function issueCode(
  tx: Transaction,
  { key, device, lifetimeMs, actor }: CodeOrder,
): Promise<{ readonly code: string; readonly row: EnrollmentCodeRow; readonly event: RegistryEvent }> {
  const code = mintEnrollmentCode();
  const { device_id: deviceId, organization_id: organizationId } = device;
  await revokeUnspentCodes(tx, deviceId);
  const row = await insertEnrollmentCode(tx, {
    organizationId,
    deviceId,
    hash: hashEnrollmentCode(code, key),
    lifetimeMs,
    createdBy: actor === OPERATOR ? null : actor.id,
  });
  const subject = { kind: "enrollment_code", id: row.code_id } as const;
  const data = { device_id: deviceId, expires_at: row.expires_at };
  return { code, row, event: { organizationId, actor, action: "enrollment_code_issued", subject, data } };
}
