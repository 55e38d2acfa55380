/** The routes that a station offers its cashier now, and why it does not offer the others (SPEC.md, "Views as decision tables"). */
import { ROUTES, type Route } from "../payment-intent.ts";
import { type BlockedReason, blockedReason, type KillSwitches } from "../standing.ts";
import type { WithdrawalReason } from "../station/reply.ts";
import type { StationDevice, StationState } from "../station/state.ts";

export interface RouteOffer {
  readonly route: Route;
  /** Null when the route is offered. */
  readonly reason: WithdrawalReason | null;
  /** Since when the reason applies, if known. */
  readonly sinceMs: number | null;
}

export function routeOffers(state: StationState, switches: KillSwitches): readonly RouteOffer[] {
  return ROUTES.map((route) => routeOffer(state, route, switches));
}

export function routeOffer(state: StationState, route: Route, switches: KillSwitches): RouteOffer {
  const { organizationId, stationId, status: stationStatus } = state;
  const standing = blockedReason({ organizationId, stationId, stationStatus }, switches);
  // A freeze stops only electronic routes, not cash (I15). A suspended or closed station collects nothing.
  const stopsCash = standing === "station_suspended" || standing === "station_closed";
  if (standing !== "" && (route !== "cash" || stopsCash)) return { route, reason: standing, sinceMs: null };
  if (route === "smart_pos") return smartPosOffer(state, switches);
  if (route === "dynamic_qr") return { route, reason: providerReason(state, switches), sinceMs: null };
  return { route, reason: null, sinceMs: null };
}

function providerReason({ provider }: StationState, switches: KillSwitches): RouteOffer["reason"] {
  if (provider.configId === null) return "provider_not_configured";
  return switches.providers.has(provider.configId) ? "provider_frozen" : null;
}

type CompanionReason = BlockedReason | "device_offline" | "device_not_enrolled" | "capability_missing";

/** A companion, and why it cannot get a smart POS collection now; null when it can. */
interface CompanionOffer {
  readonly device: StationDevice;
  readonly reason: CompanionReason | null;
}

export function companionOffers(state: StationState, switches: KillSwitches): readonly CompanionOffer[] {
  return state.devices
    .filter(({ kind }) => kind === "smart_pos_companion")
    .map((device) => ({ device, reason: companionReason(state, device, switches) }));
}

/**
 * With several companions, the route has the reason that is easiest to fix: first what the cashier can fix alone, then what needs
 * the owner, and a device that was in use comes before one that never was.
 */
function smartPosOffer(state: StationState, switches: KillSwitches): RouteOffer {
  const route = "smart_pos";
  const withdrawn: { readonly rank: number; readonly reason: CompanionReason; readonly device: StationDevice }[] = [];
  for (const { device, reason } of companionOffers(state, switches)) {
    if (reason === null) return { route, reason: null, sinceMs: null };
    withdrawn.push({ rank: rankOf(device, reason), reason, device });
  }
  const [first] = withdrawn.toSorted((a, b) => a.rank - b.rank);
  if (first === undefined) return { route, reason: "no_companion", sinceMs: null };
  const { rank, reason } = first;
  if (rank !== RANKS.wentOffline) return { route, reason, sinceMs: null };
  // The route was withdrawn when the last of these companions became silent.
  const since = withdrawn.filter((other) => other.rank === rank).map(({ device }) => device.liveness.sinceMs ?? 0);
  return { route, reason, sinceMs: Math.max(...since) };
}

const RANKS = {
  /** The cashier can switch on the device. */
  wentOffline: 0,
  /** The device is online but blocked: the owner can resume it. */
  blockedOnline: 1,
  /** Its application was never started. */
  neverOnline: 2,
  blockedOffline: 3,
  /** Its enrollment code was not claimed. */
  notEnrolled: 4,
  capabilityMissing: 5,
} as const;

function rankOf({ liveness }: StationDevice, reason: CompanionReason): number {
  switch (reason) {
    case "device_offline":
      return liveness.lastSeenAtMs === null ? RANKS.neverOnline : RANKS.wentOffline;
    case "device_not_enrolled":
      return RANKS.notEnrolled;
    case "capability_missing":
      return RANKS.capabilityMissing;
    case "device_suspended":
    case "device_frozen":
    case "station_suspended":
    case "station_closed":
    case "station_frozen":
    case "organization_frozen":
    case "platform_frozen":
      return liveness.state === "online" ? RANKS.blockedOnline : RANKS.blockedOffline;
  }
}

/** The companion for a smart POS collection, and why it cannot get one: the preferred one, or the first that can. */
export function chooseCompanion(
  state: StationState,
  switches: KillSwitches,
  preferredId?: number,
): CompanionOffer | undefined {
  const offers = companionOffers(state, switches);
  if (preferredId !== undefined) return offers.find(({ device }) => device.deviceId === preferredId);
  return offers.find(({ reason }) => reason === null);
}

function companionReason(state: StationState, device: StationDevice, switches: KillSwitches): CompanionReason | null {
  if (device.status === "pending") return "device_not_enrolled";
  const { capabilities, liveness } = device;
  if (!capabilities.includes("handoff_present") || !capabilities.includes("outcome_report"))
    return "capability_missing";
  const { organizationId, stationId, status: stationStatus } = state;
  const blocked = blockedReason({ organizationId, stationId, stationStatus, device }, switches);
  if (blocked !== "") return blocked;
  return liveness.state === "online" ? null : "device_offline";
}
