import type { enrollDevice } from "../../bus/messages/enrollment-codes.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { credentialKey, insertOutboxRows, type OutboxRow, stationKey } from "../../db/outbox.ts";
import type { Transaction } from "../../db/pool.ts";
import { credentialDeletes, devicePut, flush } from "../announce.ts";
import type { RegistryDeps } from "../deps.ts";
import { mintDeviceCredential, scopesOf } from "../secrets/device-credential.ts";
import { hashEnrollmentCode } from "../secrets/enrollment-code.ts";
import { insertCredential, revokeCredentials } from "../sql/device-credentials.ts";
import { setDeviceEnrolled } from "../sql/devices.ts";
import { lockDeviceOfClaimableCode, spendEnrollmentCode } from "../sql/enrollment-codes.ts";
import { recordEvent } from "../sql/registry-events.ts";
import { findStation } from "../sql/stations.ts";
import { deviceAfter } from "../standing-step.ts";
import { deviceOnWire, stationOnWire } from "../wire.ts";

/**
 * Claims a code: in one transaction the code is spent, the device becomes active and its one credential comes into
 * being. Every code that cannot be claimed, for whatever reason, costs one hash and one index probe that finds nothing,
 * and is refused as `enrollment_code_invalid` (I10).
 */
export async function handleEnroll(
  deps: RegistryDeps,
  request: RequestOf<typeof enrollDevice>,
): Promise<ReplyOf<typeof enrollDevice>> {
  const hash = hashEnrollmentCode(request.code, deps.settings.ENROLLMENT_CODE_KEY);
  const claim = await deps.sql.begin((tx) => claimCode(tx, hash));
  if (claim === undefined) throw new RefusedError({ code: "enrollment_code_invalid" });
  const { replaced, ...granted } = claim;
  const { deviceId, stationId } = granted.device;
  const keys = replaced ? [stationKey(stationId), credentialKey(deviceId)] : [stationKey(stationId)];
  return { ...granted, barrier: await flush(deps, ...keys) };
}

async function claimCode(tx: Transaction, hash: Buffer) {
  const claimable = await lockDeviceOfClaimableCode(tx, hash);
  if (claimable === undefined || !(await spendEnrollmentCode(tx, claimable.code_id))) return undefined;

  const status = deviceAfter(claimable.status, "CLAIM");
  const device = await setDeviceEnrolled(tx, claimable.device_id, status);
  const { device_id: deviceId, station_id: stationId, organization_id: organizationId } = device;
  const earlier = await revokeCredentials(tx, deviceId);
  const { credential, hash: credentialHash } = mintDeviceCredential(stationId);
  const scopes = scopesOf(device.kind);
  await insertCredential(tx, { organizationId, deviceId, hash: credentialHash, scopes });
  await recordEvent(tx, {
    organizationId,
    actor: { kind: "device", id: deviceId, name: device.name },
    action: "device_enrolled",
    subject: { kind: "device", id: deviceId },
    data: { code_id: claimable.code_id },
  });
  const put: OutboxRow = {
    key: stationKey(stationId),
    kind: "credential_put",
    hash: credentialHash.toString("hex"),
    entry: { deviceId, stationId, scopes },
  };
  // The station knows the device as active before its credential opens the door.
  const known = devicePut(device, { kind: "device", id: deviceId });
  await insertOutboxRows(tx, [...credentialDeletes(deviceId, earlier), known, put]);
  const station = await findStation(tx, organizationId, stationId);
  if (station === undefined) throw new Error("A device belongs to a station that does not exist.");
  return {
    credential,
    scopes,
    organizationId,
    device: deviceOnWire(device),
    station: stationOnWire(station),
    replaced: earlier.length > 0,
  };
}
