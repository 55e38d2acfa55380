/**
 * Standing: whether the owner lets a station or a device take part.
 *
 *   station:  ┌────────┐ ─SUSPEND─► ┌───────────┐           device:  ┌─────────┐ ─CLAIM─► ┌────────┐ ─SUSPEND─► ┌───────────┐
 *             │ active │ ◄─RESUME── │ suspended │                    │ pending │          │ active │ ◄─RESUME── │ suspended │
 *             └────────┘            └───────────┘                    └─────────┘ ◄─RESET─ └────────┘            └───────────┘
 *                  └──────CLOSE──► (closed) ◄──┘                      each but revoked ── REVOKE ──► (revoked)
 *
 * The registry changes these in PostgreSQL. A station's commit has the result.
 */
import { setup } from "xstate";

export const STATION_STATUSES = ["active", "suspended", "closed"] as const;
export type StationStatus = (typeof STATION_STATUSES)[number];
export type StationStandingEvent =
  | { readonly type: "SUSPEND" }
  | { readonly type: "RESUME" }
  | { readonly type: "CLOSE" };

export const stationStandingMachine = setup({ types: { events: {} as StationStandingEvent } }).createMachine({
  id: "stationStanding",
  initial: "active",
  states: {
    active: { on: { SUSPEND: "suspended", CLOSE: "closed" } },
    suspended: { on: { RESUME: "active", CLOSE: "closed" } },
    closed: { type: "final" },
  },
});

export const DEVICE_STATUSES = ["pending", "active", "suspended", "revoked"] as const;
export type DeviceStatus = (typeof DEVICE_STATUSES)[number];
export type DeviceStandingEvent =
  | { readonly type: "CLAIM" }
  | { readonly type: "SUSPEND" }
  | { readonly type: "RESUME" }
  | { readonly type: "RESET" }
  | { readonly type: "REVOKE" };

export const deviceStandingMachine = setup({ types: { events: {} as DeviceStandingEvent } }).createMachine({
  id: "deviceStanding",
  initial: "pending",
  states: {
    pending: { on: { CLAIM: "active", RESET: "pending", REVOKE: "revoked" } },
    active: { on: { SUSPEND: "suspended", RESET: "pending", REVOKE: "revoked" } },
    // A reset removes the credential of a suspended device, so the device must enroll again and cannot be resumed.
    suspended: { on: { RESUME: "active", RESET: "pending", REVOKE: "revoked" } },
    revoked: { type: "final" },
  },
});

/** Why a device may not act now. If several reasons apply, `blockedReason` names the first in this order. */
export const BLOCKED_REASONS = [
  "device_suspended",
  "device_frozen",
  "station_suspended",
  "station_closed",
  "station_frozen",
  "organization_frozen",
  "platform_frozen",
] as const;
export type BlockedReason = (typeof BLOCKED_REASONS)[number];

/** The kill switches that are on. They are not in the station log, because one switch may affect every station. */
export interface KillSwitches {
  readonly platform: boolean;
  readonly organizations: ReadonlySet<number>;
  readonly stations: ReadonlySet<number>;
  readonly devices: ReadonlySet<number>;
  /** Provider configs. Their switches withdraw a route, and block neither device nor station. */
  readonly providers: ReadonlySet<number>;
}

export const NO_KILL_SWITCHES: KillSwitches = {
  platform: false,
  organizations: new Set(),
  stations: new Set(),
  devices: new Set(),
  providers: new Set(),
};

/** The ids and statuses that standing depends on. */
export interface StandingSubject {
  readonly organizationId: number;
  readonly stationId: number;
  readonly stationStatus: StationStatus;
  readonly device?: { readonly deviceId: number; readonly status: DeviceStatus };
}

/** The first reason that blocks a device or, without a device, the station. Empty when none does. */
export function blockedReason(subject: StandingSubject, switches: KillSwitches): BlockedReason | "" {
  const { device } = subject;
  if (device?.status === "suspended") return "device_suspended";
  if (device !== undefined && switches.devices.has(device.deviceId)) return "device_frozen";
  if (subject.stationStatus === "suspended") return "station_suspended";
  if (subject.stationStatus === "closed") return "station_closed";
  if (switches.stations.has(subject.stationId)) return "station_frozen";
  if (switches.organizations.has(subject.organizationId)) return "organization_frozen";
  if (switches.platform) return "platform_frozen";
  return "";
}
