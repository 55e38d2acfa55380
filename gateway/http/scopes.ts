/** What a device may call; the registry grants them by kind when a code is claimed (design §4, "scopes"). */
export const DEVICE_SCOPES = [
  "device:read",
  "device:heartbeat",
  "assignment:read",
  "assignment:report",
  "display:read",
] as const;
export type DeviceScope = (typeof DEVICE_SCOPES)[number];
