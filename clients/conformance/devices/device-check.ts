/** A check of a device. It quotes the contract, or the guide for device makers where the contract leaves it open. */
import type { Check } from "../check.ts";
import type { DeviceWorld } from "./device-world.ts";

export type DeviceCheck = Check<DeviceWorld>;
