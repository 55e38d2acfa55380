/** The checks of each kind of device in their order. Checks about the whole run are last. */
import { handoffChecks, reportChecks } from "./checks/companion.ts";
import { displayChecks } from "./checks/display.ts";
import { enrollmentChecks, revocationChecks } from "./checks/enrollment.ts";
import { historyChecks, presenceChecks, standingChecks } from "./checks/presence.ts";
import type { DeviceCheck } from "./device-check.ts";
import type { DeviceKind } from "./device-world.ts";

const around = (checks: readonly DeviceCheck[]): readonly DeviceCheck[] => [
  ...enrollmentChecks,
  ...presenceChecks,
  ...checks,
  ...standingChecks,
  ...revocationChecks,
  ...historyChecks,
];

export const DEVICE_CHECKS: Readonly<Record<DeviceKind, readonly DeviceCheck[]>> = {
  companion: around([...handoffChecks, ...reportChecks]),
  display: around(displayChecks),
};
