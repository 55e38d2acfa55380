import { STATE_LIMITS } from "../../../machines/settings.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type { changeDevice, getDevice, listDevices, registerDevice } from "../../bus/messages/devices.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { insertOutbox, stationKey } from "../../db/outbox.ts";
import type { Transaction } from "../../db/pool.ts";
import { devicePut, flush } from "../announce.ts";
import { capabilitiesFor, requireHandoffTargetFits } from "../capabilities.ts";
import type { RegistryDeps } from "../deps.ts";
import { readLastHeartbeat } from "../last-heartbeat.ts";
import { requirePermission } from "../permissions.ts";
import * as devices from "../sql/devices.ts";
import { recordEvent, userActor } from "../sql/registry-events.ts";
import { findStation, lockStation } from "../sql/stations.ts";
import { deviceOnWire } from "../wire.ts";

export async function handleListDevices(
  deps: RegistryDeps,
  { caller, stationId, status, sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listDevices>,
): Promise<ReplyOf<typeof listDevices>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  if (stationId !== undefined && (await findStation(deps.sql, organizationId, stationId)) === undefined) {
    throw new RefusedError({ code: "not_found" });
  }
  const rows = await devices.listDevices(deps.sql, { organizationId, stationId, status, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(deviceOnWire), limit);
  return { devices: page, hasMore };
}

export async function handleGetDevice(
  deps: RegistryDeps,
  { caller, deviceId }: RequestOf<typeof getDevice>,
): Promise<ReplyOf<typeof getDevice>> {
  requirePermission(caller, "organization.manage");
  const device = await devices.findDevice(deps.sql, caller.organizationId, deviceId);
  if (device === undefined) throw new RefusedError({ code: "not_found" });
  return { device: deviceOnWire(device), lastHeartbeat: await readLastHeartbeat(deps, device) };
}

/** Registers a device against exactly one station; it is pending until it claims a code. */
export async function handleRegisterDevice(
  deps: RegistryDeps,
  request: RequestOf<typeof registerDevice>,
): Promise<ReplyOf<typeof registerDevice>> {
  const { caller, stationId, name, kind } = request;
  requirePermission(caller, "organization.manage");
  const capabilities = capabilitiesFor(kind, request.capabilities);
  requireHandoffTargetFits(kind, request.handoffTarget);
  const { organizationId } = caller;
  const device = await deps.sql.begin(async (tx) => {
    await requireRoomAtStation(tx, organizationId, stationId);
    const handoffTarget = request.handoffTarget ?? "";
    const row = await devices.insertDevice(tx, { organizationId, stationId, name, kind, capabilities, handoffTarget });
    const subject = { kind: "device", id: row.device_id } as const;
    const data = { name, kind, capabilities, handoff_target: handoffTarget, station_id: stationId };
    await recordEvent(tx, { organizationId, actor: userActor(caller), action: "device_registered", subject, data });
    await insertOutbox(tx, devicePut(row, { kind: "owner", id: caller.userId }));
    return row;
  });
  return { device: deviceOnWire(device), barrier: await flush(deps, stationKey(stationId)) };
}

/** Holds the station, so that two registrations cannot both take its last place. */
async function requireRoomAtStation(tx: Transaction, organizationId: number, stationId: number): Promise<void> {
  const station = await lockStation(tx, organizationId, stationId);
  if (station === undefined) throw new RefusedError({ code: "not_found" });
  if (station.status === "closed") {
    throw new RefusedError({ code: "conflict", detail: "A closed station takes no devices." });
  }
  if ((await devices.countDevicesInUse(tx, stationId)) >= STATE_LIMITS.devices) {
    const detail = `A station has at most ${STATE_LIMITS.devices} devices.`;
    throw new RefusedError({ code: "device_limit_reached", detail });
  }
}

export async function handleChangeDevice(
  deps: RegistryDeps,
  request: RequestOf<typeof changeDevice>,
): Promise<ReplyOf<typeof changeDevice>> {
  const { caller, deviceId } = request;
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const device = await deps.sql.begin(async (tx) => {
    const before = await devices.lockDevice(tx, organizationId, deviceId);
    if (before === undefined) throw new RefusedError({ code: "not_found" });
    if (before.status === "revoked") {
      throw new RefusedError({ code: "conflict", detail: "A revoked device cannot be changed." });
    }
    requireHandoffTargetFits(before.kind, request.handoffTarget);
    const { capabilities } = request;
    const after = {
      device_id: deviceId,
      name: request.name ?? before.name,
      capabilities: capabilities === undefined ? before.capabilities : capabilitiesFor(before.kind, capabilities),
      handoff_target: request.handoffTarget ?? before.handoff_target,
    };
    const row = await devices.setDeviceDescription(tx, after);
    const { device_id: _, ...to } = after;
    const from = { name: before.name, capabilities: before.capabilities, handoff_target: before.handoff_target };
    const subject = { kind: "device", id: deviceId } as const;
    const data = { from, to };
    await recordEvent(tx, { organizationId, actor: userActor(caller), action: "device_changed", subject, data });
    await insertOutbox(tx, devicePut(row, { kind: "owner", id: caller.userId }));
    return row;
  });
  return { device: deviceOnWire(device), barrier: await flush(deps, stationKey(device.station_id)) };
}
