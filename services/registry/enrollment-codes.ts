/**
 * Enrollment: the owner issues a one-time code for a pending device, and the device exchanges the code for a credential.
 *
 * A code has ten characters of Crockford's base32, 50 bits, shown as XXXXX-XXXXX (design §4). A person types it, so case,
 * hyphens and spaces do not matter, O reads as 0, and I and L read as 1. A credential is
 * `dp_<partition, 2 hex>_<256 random bits>`. Only hashes are stored.
 */
import { createHash, createHmac, randomBytes } from "node:crypto";
import { partitionOf, partitionToken } from "../../machines/partition.ts";
import type { DeviceKind } from "../../machines/station/state.ts";
import type { announceCredentials as AnnounceCredentials } from "../bus/messages/announce.ts";
import { OPERATOR, personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as codes from "../bus/messages/enrollment-codes.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { credentialKey, insertOutboxRows, type OutboxRow, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { type ClaimingHandler, flush, type RegistryHandler } from "./deps.ts";
import { credentialDeletes, deviceAfter, deviceMessage, devicePut } from "./devices.ts";
import { ownerEvent } from "./events.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { organizationParty } from "./passwords.ts";
import { hashSecret } from "./secrets.ts";
import * as devices from "./sql/devices.ts";
import * as sql from "./sql/enrollment-codes.ts";
import { type RegistryActor, type RegistryEvent, recordEvent } from "./sql/events.ts";
import { getStation, holdStation } from "./sql/stations.ts";
import { stationMessage } from "./stations.ts";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH = 10;
const WELL_FORMED = /^[0-9A-HJKMNP-TV-Z]{10}$/;
/** Hashed when the input cannot be a code. No code has these characters, so no row has this hash. */
const IMPOSSIBLE = "!".repeat(LENGTH);

/** A new code without its hyphen. The size of the alphabet divides 256, so all characters are equally likely. */
export function mintEnrollmentCode(): string {
  return Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

/** The form of a code that a person sees. */
export function showEnrollmentCode(code: string): string {
  return `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`;
}

/** The canonical form of what a person typed, or undefined when it cannot be a code. */
function readEnrollmentCode(typed: string): string | undefined {
  if (typed.length > REGISTRY_LIMITS.enrollmentCodeInputLength) return undefined;
  const code = typed.toUpperCase().replaceAll(/[\s-]/g, "").replaceAll("O", "0").replaceAll(/[IL]/g, "1");
  return WELL_FORMED.test(code) ? code : undefined;
}

/**
 * The hash under which the registry stores and finds a code: HMAC-SHA-256 when the operator has set a key, else SHA-256.
 * Text that cannot be a code is hashed too, so that the answer takes as long as for an unknown code (I10).
 */
function hashEnrollmentCode(typed: string, key: string | undefined): Buffer {
  const code = readEnrollmentCode(typed) ?? IMPOSSIBLE;
  return (key === undefined ? createHash("sha256") : createHmac("sha256", key)).update(code).digest();
}

/** The scopes of a credential: what a device of each kind may call. */
const SCOPES: Readonly<Record<DeviceKind, readonly string[]>> = {
  smart_pos_companion: ["device:read", "device:heartbeat", "assignment:read", "assignment:report"],
  customer_display: ["device:read", "device:heartbeat", "display:read"],
};

/** A new credential. It contains the partition of its station, by which a load balancer can select a gateway. */
function mintDeviceCredential(stationId: number): { readonly credential: string; readonly hash: Buffer } {
  const credential = `dp_${partitionToken(partitionOf(stationId))}_${randomBytes(32).toString("base64url")}`;
  return { credential, hash: hashSecret(credential) };
}

const codeMessage = (row: sql.EnrollmentCodeRow): codes.EnrollmentCode => ({
  codeId: row.code_id,
  deviceId: row.device_id,
  status: row.status,
  expiresAtMs: row.expires_at.getTime(),
  createdAtMs: row.created_at.getTime(),
});

interface NewCode {
  /** The key of the code's hash, if the operator has set one. */
  readonly key: string | undefined;
  /** A pending device whose row the transaction has locked. */
  readonly device: devices.DeviceRow;
  readonly lifetimeMs: number;
  readonly actor: RegistryActor;
}

/** Revokes the device's open code and makes a new one. The caller records the event after its last row lock. */
export async function issueCode(
  tx: Transaction,
  { key, device, lifetimeMs, actor }: NewCode,
): Promise<{ readonly code: string; readonly row: sql.EnrollmentCodeRow; readonly event: RegistryEvent }> {
  const code = mintEnrollmentCode();
  const { device_id: deviceId, organization_id: organizationId } = device;
  await sql.revokeEnrollmentCodes(tx, deviceId);
  const row = await sql.issueEnrollmentCode(tx, {
    organizationId,
    deviceId,
    hash: hashEnrollmentCode(code, key),
    lifetimeMs,
    createdBy: actor === OPERATOR ? null : actor.id,
  });
  const subject = { kind: "enrollment_code", id: row.code_id } as const;
  const data = { device_id: deviceId, expires_at: row.expires_at };
  const event = { organizationId, actor, action: "enrollment_code_issued", subject, data };
  return { code: showEnrollmentCode(code), row, event };
}

export const issueEnrollmentCode: RegistryHandler<typeof codes.issueEnrollmentCode> = async (deps, request) => {
  const { caller, deviceId, lifetimeMs = REGISTRY_LIMITS.enrollmentCodeLifetimeMs } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  return deps.sql.begin(async (tx) => {
    const known = existing(await devices.getDevice(tx, organizationId, deviceId));
    // Held before the device is locked, as everywhere. A close that waits for it revokes this code too.
    const station = await holdStation(tx, organizationId, known.station_id);
    const device = existing(await devices.lockDevice(tx, organizationId, deviceId));
    if (device.status !== "pending") {
      const detail = `Only a pending device gets a code; this device is ${device.status}. Reset the device to enroll it again.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    if (station?.status === "closed") {
      throw new RefusedError({ code: "conflict", detail: "A device cannot enroll at a closed station." });
    }
    const key = deps.settings.ENROLLMENT_CODE_KEY;
    const { code, row, event } = await issueCode(tx, { key, device, lifetimeMs, actor: personActor(caller) });
    await recordEvent(tx, event);
    return { code, enrollmentCode: codeMessage(row) };
  });
};

export const listEnrollmentCodes: RegistryHandler<typeof codes.listEnrollmentCodes> = async (deps, request) => {
  const { caller, deviceId, beforeId, limit } = request;
  requirePermission(caller, "organization.manage");
  existing(await devices.getDevice(deps.sql, caller.organizationId, deviceId));
  const rows = await sql.listEnrollmentCodes(deps.sql, { deviceId, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(codeMessage), limit);
  return { enrollmentCodes: page, hasMore };
};

/** Revokes an open code. A repeated call changes nothing. Refuses with `conflict` for a spent or expired code. */
export const revokeEnrollmentCode: RegistryHandler<typeof codes.revokeEnrollmentCode> = async (
  deps,
  { caller, codeId },
) => {
  const { organizationId } = requirePermission(caller, "organization.manage");
  return deps.sql.begin(async (tx) => {
    const known = existing(await sql.getEnrollmentCode(tx, organizationId, codeId));
    await devices.lockDevice(tx, organizationId, known.device_id);
    // Read again under the lock: a claim may have spent it meanwhile.
    const before = existing(await sql.getEnrollmentCode(tx, organizationId, codeId));
    if (before.status === "revoked") return { enrollmentCode: codeMessage(before) };
    if (before.status !== "open") {
      throw new RefusedError({ code: "conflict", detail: `A code that is ${before.status} cannot be revoked.` });
    }
    await sql.revokeEnrollmentCodes(tx, before.device_id);
    const subject = { kind: "enrollment_code", id: codeId } as const;
    const data = { device_id: before.device_id };
    await recordEvent(tx, ownerEvent(caller, "enrollment_code_revoked", subject, data));
    return { enrollmentCode: codeMessage({ ...before, status: "revoked" }) };
  });
};

/**
 * Claims a code: one transaction spends the code, activates the device and creates its only credential. Refuses with
 * `enrollment_code_invalid` for every code that cannot be claimed. Each such code costs the same: one hash and one index
 * lookup without a result (I10).
 */
export const enrollDevice: ClaimingHandler<typeof codes.enrollDevice> = async (deps, request, claimNow) => {
  const hash = hashEnrollmentCode(request.code, deps.settings.ENROLLMENT_CODE_KEY);
  const organizationId = await deps.shares.lookUp(request.address, () =>
    sql.organizationOfClaimableCode(deps.sql, hash),
  );
  if (organizationId === undefined) throw new RefusedError({ code: "enrollment_code_invalid" });
  const claim = await deps.shares.run(organizationParty(organizationId), async () => {
    await claimNow();
    return await deps.sql.begin((tx) => claimCode(tx, hash));
  });
  if (claim === undefined) throw new RefusedError({ code: "enrollment_code_invalid" });
  const { replaced, ...granted } = claim;
  const { deviceId, stationId } = granted.device;
  const keys = replaced ? [stationKey(stationId), credentialKey(deviceId)] : [stationKey(stationId)];
  return { ...granted, barrier: await flush(deps, ...keys) };
};

async function claimCode(tx: Transaction, hash: Buffer) {
  const claimable = await sql.lockDeviceOfClaimableCode(tx, hash);
  if (claimable === undefined || !(await sql.spendEnrollmentCode(tx, claimable.code_id))) return undefined;

  const status = deviceAfter(claimable.status, "CLAIM", "enrolled");
  const row = await devices.enrollDevice(tx, claimable.device_id, status);
  const { device_id: deviceId, station_id: stationId, organization_id: organizationId, name } = row;
  const earlier = await devices.revokeCredentials(tx, deviceId);
  const { credential, hash: credentialHash } = mintDeviceCredential(stationId);
  const scopes = [...SCOPES[row.kind]];
  await devices.insertCredential(tx, { organizationId, deviceId, hash: credentialHash, scopes });
  await recordEvent(tx, {
    organizationId,
    actor: { kind: "device", id: deviceId, name },
    action: "device_enrolled",
    subject: { kind: "device", id: deviceId },
    data: { code_id: claimable.code_id },
  });
  const entry = { deviceId, stationId, scopes };
  const credentialPut: OutboxRow = {
    key: stationKey(stationId),
    kind: "credential_put",
    hash: credentialHash.toString("hex"),
    entry,
  };
  // The station receives the active device before the gateways receive its credential.
  const put = devicePut(row, { kind: "device", id: deviceId });
  await insertOutboxRows(tx, [...credentialDeletes(deviceId, earlier), put, credentialPut]);
  const station = await getStation(tx, organizationId, stationId);
  if (station === undefined) throw new Error("A device belongs to a station that does not exist.");
  return {
    credential,
    scopes,
    organizationId,
    device: deviceMessage(row),
    station: stationMessage(station),
    replaced: earlier.length > 0,
  };
}

/** A page of all credentials. The relay calls it when the bus has lost data. The entry of a revoked credential is null. */
export const announceCredentials: RegistryHandler<typeof AnnounceCredentials> = async (deps, { sinceId, limit }) => {
  const rows = await devices.announceCredentials(deps.sql, { sinceId, limit: limit + 1 });
  const found = rows.map((row) => {
    const entry = { deviceId: row.device_id, stationId: row.station_id, scopes: row.scopes };
    return { id: row.credential_id, hash: row.hash, entry: row.is_valid ? entry : null };
  });
  const { page, hasMore } = firstPage(found, limit);
  return { entries: page, hasMore };
};
