/** The routes that a cashier is offered now, with the reason for each that is not (design §5, "Routes"). */
import { ROUTES, type Route } from "../payment-intent.ts";
import { blockedReason, type KillSwitches } from "../standing.ts";
import type { WithdrawalReason } from "../station/reply.ts";
import type { StationDevice, StationState } from "../station/state.ts";

export interface RouteOffer {
  readonly route: Route;
  /** Null when the route is offered. */
  readonly reason: WithdrawalReason | null;
  /** Since when the reason holds, where that is known. */
  readonly sinceMs: number | null;
}

export function routeOffers(state: StationState, switches: KillSwitches): readonly RouteOffer[] {
  return ROUTES.map((route) => routeOffer(state, route, switches));
}

export function routeOffer(state: StationState, route: Route, switches: KillSwitches): RouteOffer {
  const { organizationId, stationId, status: stationStatus } = state;
  const standing = blockedReason({ organizationId, stationId, stationStatus }, switches);
  // A freeze stops electronic routes; cash collects on (I15). A suspended or closed station collects nothing.
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

function smartPosOffer(state: StationState, switches: KillSwitches): RouteOffer {
  const route = "smart_pos";
  const companions = state.devices.filter(isCompanion);
  if (chooseCompanion(state, switches) !== undefined) return { route, reason: null, sinceMs: null };
  const allowed = companions.filter((device) => deviceReason(state, device, switches) === "");
  if (allowed.length === 0) {
    const [first] = companions.map((device) => deviceReason(state, device, switches));
    return { route, reason: first === undefined || first === "" ? "no_companion" : first, sinceMs: null };
  }
  // The route was withdrawn when the last of them went silent.
  const since = allowed.map((device) => device.liveness.sinceMs ?? 0).reduce((a, b) => Math.max(a, b), 0);
  return { route, reason: "device_offline", sinceMs: since === 0 ? null : since };
}

/** The companion that a smart POS collection is handed to: the preferred one when it is live, else the first live one. */
export function chooseCompanion(
  state: StationState,
  switches: KillSwitches,
  preferredId?: number,
): StationDevice | undefined {
  const live = state.devices.filter(
    (device) =>
      isCompanion(device) && device.liveness.state === "online" && deviceReason(state, device, switches) === "",
  );
  return preferredId === undefined ? live[0] : live.find((device) => device.deviceId === preferredId);
}

function isCompanion(device: StationDevice): boolean {
  return (
    device.kind === "smart_pos_companion" &&
    device.status !== "pending" &&
    device.capabilities.includes("handoff_present") &&
    device.capabilities.includes("outcome_report")
  );
}

function deviceReason(
  state: StationState,
  device: StationDevice,
  switches: KillSwitches,
): ReturnType<typeof blockedReason> {
  const { organizationId, stationId, status: stationStatus } = state;
  return blockedReason({ organizationId, stationId, stationStatus, device }, switches);
}
