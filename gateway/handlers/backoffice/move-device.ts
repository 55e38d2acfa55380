/** A device's standing: suspend, resume, reset (it must enroll again), revoke for good. */
import type { DeviceStandingEvent } from "../../../machines/standing.ts";
import { moveDevice } from "../../../services/bus/messages/devices.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { changedDeviceWire } from "./devices.ts";

/** `CLAIM` is the device's own move, by its enrollment code. Refusal: `conflict`. */
export const moveOwnDevice =
  (move: Exclude<DeviceStandingEvent["type"], "CLAIM">): SessionHandler =>
  async (context) => {
    const { caller, deps } = context;
    const { device } = await deps.bus.call(moveDevice, { caller, deviceId: context.id("device_id"), move });
    return ok(changedDeviceWire(deps, device));
  };
