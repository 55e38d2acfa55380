/**
 * Devices. An owner registers each device at one station, which never changes. The device works once it has claimed an
 * enrollment code.
 */
import { isDeepStrictEqual } from "node:util";
import type { Actor } from "../../machines/actor.ts";
import { take } from "../../machines/pure-transition.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { type DeviceStandingEvent, type DeviceStatus, deviceStandingMachine } from "../../machines/standing.ts";
import type { Capability, DeviceKind } from "../../machines/station/state.ts";
import { type Caller, requirePermission } from "../bus/messages/caller.ts";
import type * as devices from "../bus/messages/devices.ts";
import { heartbeatSchema } from "../bus/messages/heartbeat.ts";
import { firstPage } from "../bus/page.ts";
import { existing, invalidField, RefusedError } from "../bus/refusals.ts";
import { LIVENESS } from "../bus/streams.ts";
import { heartbeatSubject } from "../bus/subjects.ts";
import { createOnce } from "../db/creations.ts";
import { credentialKey, insertOutbox, insertOutboxRows, type OutboxRow, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { flush, type RegistryDeps, type RegistryHandler } from "./deps.ts";
import { ownerEvent } from "./events.ts";
import * as sql from "./sql/devices.ts";
import { revokeEnrollmentCodes } from "./sql/enrollment-codes.ts";
import { type RegistryEvent, recordEvent } from "./sql/events.ts";
import { getStation, lockStation } from "./sql/stations.ts";

/** The fields of a device that the station's actor knows. */
export const deviceDescription = (row: sql.DeviceRow) => ({
  deviceId: row.device_id,
  name: row.name,
  kind: row.kind,
  capabilities: row.capabilities,
  status: row.status,
  handoffTarget: row.handoff_target,
  revision: row.revision,
});

export const deviceMessage = (row: sql.DeviceRow): devices.Device => ({
  ...deviceDescription(row),
  stationId: row.station_id,
  createdAtMs: row.created_at.getTime(),
  enrolledAtMs: row.enrolled_at?.getTime() ?? null,
});

/** Sends the station's actor the current state of one of its devices. */
export function devicePut(row: sql.DeviceRow, actor: Actor): OutboxRow {
  const stationId = row.station_id;
  const command = { type: "device_put", device: deviceDescription(row) } as const;
  return { key: stationKey(stationId), kind: "station_command", stationId, actor, command };
}

/** Removes revoked credentials from the gateways. */
export const credentialDeletes = (deviceId: number, hashes: readonly string[]): OutboxRow[] =>
  hashes.map((hash) => ({ key: credentialKey(deviceId), kind: "credential_delete", hash }));

const CAPABILITIES_OF_KIND: Readonly<Record<DeviceKind, readonly Capability[]>> = {
  smart_pos_companion: ["handoff_present", "outcome_report"],
  customer_display: ["display_total", "qr_dynamic_present"],
};

/**
 * The declared capabilities, in their usual order and without repetition. Without a declaration: all capabilities of the
 * kind. Throws `invalid_request` for a capability that this kind of device cannot have.
 */
export function capabilitiesFor(kind: DeviceKind, declared: readonly Capability[] | undefined): Capability[] {
  const possible = CAPABILITIES_OF_KIND[kind];
  const foreign = declared?.find((capability) => !possible.includes(capability));
  if (foreign !== undefined) {
    throw invalidField("/capabilities", "does_not_fit", `A ${kind} cannot have the capability ${foreign}.`);
  }
  return possible.filter((capability) => declared === undefined || declared.includes(capability));
}

/** Throws `invalid_request` for a launch reference of a device that launches no payment application. */
function requireHandoffTargetFits(kind: DeviceKind, handoffTarget: string | undefined): void {
  if (kind === "smart_pos_companion" || handoffTarget === undefined || handoffTarget === "") return;
  throw invalidField("/handoff_target", "does_not_fit", "Only a smart_pos_companion has a launch reference.");
}

export const listDevices: RegistryHandler<typeof devices.listDevices> = async (deps, request) => {
  const { caller, stationId, status, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  if (stationId !== undefined) existing(await getStation(deps.sql, organizationId, stationId), "station_id");
  const rows = await sql.listDevices(deps.sql, { organizationId, stationId, status, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(deviceMessage), limit);
  return { devices: page, hasMore };
};

export const getDevice: RegistryHandler<typeof devices.getDevice> = async (deps, { caller, deviceId }) => {
  requirePermission(caller, "organization.manage");
  const row = existing(await sql.getDevice(deps.sql, caller.organizationId, deviceId));
  return { device: deviceMessage(row), lastHeartbeat: await readLastHeartbeat(deps, row) };
};

/** From the LIVENESS stream; null when the device has never sent one. */
async function readLastHeartbeat({ jsm }: Pick<RegistryDeps, "jsm">, row: sql.DeviceRow) {
  const subject = heartbeatSubject(row.station_id, row.device_id);
  const message = await jsm.direct.getMessage(LIVENESS.name, { last_by_subj: subject });
  return message === null ? null : heartbeatSchema.parse(message.json());
}

/** The device is pending until it claims a code. */
export const registerDevice: RegistryHandler<typeof devices.registerDevice> = async (deps, request) => {
  const { caller, stationId, name, kind, handoffTarget = "", creation } = request;
  requirePermission(caller, "organization.manage");
  const capabilities = capabilitiesFor(kind, request.capabilities);
  requireHandoffTargetFits(kind, handoffTarget);
  const { organizationId } = caller;
  const create = async (tx: Transaction): Promise<sql.DeviceRow> => {
    await requireRoomAtStation(tx, organizationId, stationId);
    const row = await sql.registerDevice(tx, { organizationId, stationId, name, kind, capabilities, handoffTarget });
    const data = { name, kind, capabilities, handoff_target: handoffTarget, station_id: stationId };
    await recordEvent(tx, ownerEvent(caller, "device_registered", { kind: "device", id: row.device_id }, data));
    await insertOutbox(tx, devicePut(row, { kind: "owner", id: caller.userId }));
    return row;
  };
  const again = (tx: Transaction, id: number) => sql.getDevice(tx, organizationId, id);
  const device = await createOnce(deps.sql, creation, { create, again, idOf: (row) => row.device_id });
  return { device: deviceMessage(device), barrier: await flush(deps, stationKey(stationId)) };
};

/** Locks the station, so that two registrations cannot both take its last place. */
export async function requireRoomAtStation(tx: Transaction, organizationId: number, stationId: number): Promise<void> {
  const station = existing(await lockStation(tx, organizationId, stationId), "station_id");
  if (station.status === "closed") {
    throw new RefusedError({ code: "conflict", detail: "A closed station takes no devices." });
  }
  if ((await sql.countDevicesInUse(tx, stationId)) >= STATE_LIMITS.devices) {
    const detail = `A station has at most ${STATE_LIMITS.devices} devices.`;
    throw new RefusedError({ code: "device_limit_reached", detail });
  }
}

/** With the present values it changes nothing and records no event. */
export const changeDevice: RegistryHandler<typeof devices.changeDevice> = async (deps, request) => {
  const { caller, deviceId, capabilities } = request;
  requirePermission(caller, "organization.manage");
  const device = await deps.sql.begin(async (tx) => {
    const before = existing(await sql.lockDevice(tx, caller.organizationId, deviceId));
    if (before.status === "revoked") {
      throw new RefusedError({ code: "conflict", detail: "A revoked device cannot be changed." });
    }
    requireHandoffTargetFits(before.kind, request.handoffTarget);
    const from = { name: before.name, capabilities: before.capabilities, handoff_target: before.handoff_target };
    const to = {
      name: request.name ?? from.name,
      capabilities: capabilities === undefined ? from.capabilities : capabilitiesFor(before.kind, capabilities),
      handoff_target: request.handoffTarget ?? from.handoff_target,
    };
    if (isDeepStrictEqual(from, to)) return before;
    const row = await sql.changeDevice(tx, { device_id: deviceId, ...to });
    await recordEvent(tx, ownerEvent(caller, "device_changed", { kind: "device", id: deviceId }, { from, to }));
    await insertOutbox(tx, devicePut(row, { kind: "owner", id: caller.userId }));
    return row;
  });
  return { device: deviceMessage(device), barrier: await flush(deps, stationKey(device.station_id)) };
};

/** The status after a move. Throws `conflict` when the device's machine does not allow the move in this status. */
export function deviceAfter(status: DeviceStatus, move: DeviceStandingEvent["type"], done: string): DeviceStatus {
  const next = take(deviceStandingMachine, { value: status, context: {} }, { type: move });
  if (next === undefined) throw new RefusedError({ code: "conflict", detail: `A ${status} device cannot be ${done}.` });
  return next.value as DeviceStatus;
}

/** `to` is the status in which the move changes nothing. A reset has none: it also revokes the code of a pending device. */
const MOVES = {
  SUSPEND: { to: "suspended", done: "suspended", endsAccess: false },
  RESUME: { to: "active", done: "resumed", endsAccess: false },
  RESET: { to: null, done: "reset", endsAccess: true },
  REVOKE: { to: "revoked", done: "revoked", endsAccess: true },
} as const;

/**
 * Suspends, resumes, resets or revokes a device. When the device already has the status, nothing changes; the answer still
 * waits for the effect of the first request. A repeated reset acts again. A reset or a revocation ends the device's credential and code. The deletion of a
 * credential has a separate outbox key, so that it does not wait for the station's actor.
 */
export const moveDevice: RegistryHandler<typeof devices.moveDevice> = async (deps, { caller, deviceId, move }) => {
  requirePermission(caller, "organization.manage");
  const device = await deps.sql.begin(async (tx) => {
    const before = existing(await sql.lockDevice(tx, caller.organizationId, deviceId));
    if (before.status === MOVES[move].to) return before;
    const { row, event, outboxRows } = await moveLockedDevice(tx, { caller, device: before, move });
    await recordEvent(tx, event);
    await insertOutboxRows(tx, outboxRows);
    return row;
  });
  const keys = [stationKey(device.station_id), ...(MOVES[move].endsAccess ? [credentialKey(deviceId)] : [])];
  return { device: deviceMessage(device), barrier: await flush(deps, ...keys) };
};

/** Moves a locked device. After the transaction's last row lock, the caller records the event and then the outbox rows. */
export async function moveLockedDevice(
  tx: Transaction,
  {
    caller,
    device,
    move,
  }: { readonly caller: Caller; readonly device: sql.DeviceRow; readonly move: keyof typeof MOVES },
): Promise<{ readonly row: sql.DeviceRow; readonly event: RegistryEvent; readonly outboxRows: readonly OutboxRow[] }> {
  const { done, endsAccess } = MOVES[move];
  const { device_id: deviceId, status: from } = device;
  const to = deviceAfter(from, move, done);
  const row = await sql.moveDevice(tx, deviceId, to);
  if (endsAccess) await revokeEnrollmentCodes(tx, deviceId);
  const hashes = endsAccess ? await sql.revokeCredentials(tx, deviceId) : [];
  const event = ownerEvent(caller, `device_${done}`, { kind: "device", id: deviceId }, { from, to });
  const put = devicePut(row, { kind: "owner", id: caller.userId });
  return { row, event, outboxRows: [...credentialDeletes(deviceId, hashes), put] };
}
