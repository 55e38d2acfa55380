/** Devices: list, register, read with the newest heartbeat, change. A foreign one is `not_found`. */
import type { z } from "zod";
import { NO_KILL_SWITCHES } from "../../../machines/standing.ts";
import {
  changeDevice,
  type Device,
  getDevice,
  listDevices,
  registerDevice,
} from "../../../services/bus/messages/devices.ts";
import type {
  changeDeviceBodySchema,
  devicesQuerySchema,
  registerDeviceBodySchema,
} from "../../contract/backoffice.ts";
import { created, type HandlerDeps, ok, type SessionHandler } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";
import { type DeviceWire, deviceWire } from "./device-wire.ts";

/** A device joined with what this gateway's replica knows of its station. */
export function ownDeviceWire(deps: HandlerDeps, device: Device): DeviceWire {
  return deviceWire(device, { state: deps.station(device.stationId), switches: deps.switches() });
}

/** A device that was changed just now: without its station while that is not known to be current. */
export function changedDeviceWire(deps: HandlerDeps, device: Device): DeviceWire {
  if (deps.isFresh(device.stationId)) return ownDeviceWire(deps, device);
  return deviceWire(device, { state: undefined, switches: NO_KILL_SWITCHES });
}

export const listOwnDevices: SessionHandler<undefined, z.infer<typeof devicesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { station_id: stationId, status, since_id: sinceId, limit } = query;
  const { devices, hasMore } = await deps.bus.call(listDevices, { caller, stationId, status, sinceId, limit });
  return ok({ devices: devices.map((device) => ownDeviceWire(deps, device)), has_more: hasMore });
};

/** Refusals: `not_found` for the station, `device_limit_reached`, `conflict` for a closed one. */
export const registerOwnDevice: SessionHandler<z.infer<typeof registerDeviceBodySchema>> = async (context) => {
  const { station_id: stationId, handoff_target: handoffTarget, name, kind, capabilities } = context.body;
  const { caller, deps } = context;
  const request = { caller, stationId, name, kind, capabilities, handoffTarget };
  const { device } = await deps.bus.call(registerDevice, request);
  return created(changedDeviceWire(deps, device));
};

export const getOwnDevice: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { device, lastHeartbeat } = await deps.bus.call(getDevice, { caller, deviceId: context.id("device_id") });
  const heartbeat =
    lastHeartbeat === null ? null : { at: toTimestamp(lastHeartbeat.atMs), summary: lastHeartbeat.summary };
  return ok({ ...ownDeviceWire(deps, device), last_heartbeat: heartbeat });
};

/** Refusal: `conflict` for a revoked device. */
export const changeOwnDevice: SessionHandler<z.infer<typeof changeDeviceBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { name, capabilities, handoff_target: handoffTarget } = body;
  const deviceId = context.id("device_id");
  const { device } = await deps.bus.call(changeDevice, { caller, deviceId, name, capabilities, handoffTarget });
  return ok(changedDeviceWire(deps, device));
};
