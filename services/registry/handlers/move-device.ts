import type { moveDevice } from "../../bus/messages/devices.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { credentialKey, insertOutboxRows, stationKey } from "../../db/outbox.ts";
import { credentialDeletes, devicePut, flush } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { requirePermission } from "../permissions.ts";
import { revokeCredentials } from "../sql/device-credentials.ts";
import { lockDevice, setDeviceStatus } from "../sql/devices.ts";
import { revokeUnspentCodes } from "../sql/enrollment-codes.ts";
import { recordEvent, userActor } from "../sql/registry-events.ts";
import { deviceAfter } from "../standing-step.ts";
import { deviceOnWire } from "../wire.ts";

/**
 * Suspends, resumes, resets or revokes. A device that is as it is asked to be stays so, and the answer waits for what made it
 * so: a repetition is harmless, and shows whether the first request is effective. A reset or revoked device keeps neither a credential nor a code, so that
 * whoever held one is out; their deletion has a key of its own and does not wait for the station's actor.
 */
export async function handleMoveDevice(
  deps: RegistryDeps,
  { caller, deviceId, move }: RequestOf<typeof moveDevice>,
): Promise<ReplyOf<typeof moveDevice>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const endsAccess = move === "RESET" || move === "REVOKE";
  const device = await deps.sql.begin(async (tx) => {
    const before = await lockDevice(tx, organizationId, deviceId);
    if (before === undefined) throw new RefusedError({ code: "not_found" });
    if (before.status === STATUS_AFTER[move]) return before;
    const status = deviceAfter(before.status, move);
    const row = await setDeviceStatus(tx, deviceId, status);
    if (endsAccess) await revokeUnspentCodes(tx, deviceId);
    const hashes = endsAccess ? await revokeCredentials(tx, deviceId) : [];
    const subject = { kind: "device", id: deviceId } as const;
    const data = { from: before.status, to: status };
    await recordEvent(tx, { organizationId, actor: userActor(caller), action: ACTIONS[move], subject, data });
    const put = devicePut(row, { kind: "owner", id: caller.userId });
    await insertOutboxRows(tx, [...credentialDeletes(deviceId, hashes), put]);
    return row;
  });
  const keys = [stationKey(device.station_id), ...(endsAccess ? [credentialKey(deviceId)] : [])];
  return { device: deviceOnWire(device), barrier: await flush(deps, ...keys) };
}

/** A reset has none: it also voids the code of a device that is pending. */
const STATUS_AFTER = { SUSPEND: "suspended", RESUME: "active", RESET: null, REVOKE: "revoked" } as const;

const ACTIONS = {
  SUSPEND: "device_suspended",
  RESUME: "device_resumed",
  RESET: "device_reset",
  REVOKE: "device_revoked",
} as const;
