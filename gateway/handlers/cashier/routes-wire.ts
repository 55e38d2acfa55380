/** The routes offered at a station and the companions behind `smart_pos`, for the wire. */

import type { z } from "zod";
import { blockedReason, type KillSwitches } from "../../../machines/standing.ts";
import type { StationDevice, StationState } from "../../../machines/station/state.ts";
import { companionOffers, routeOffers } from "../../../machines/views/routes.ts";
import { livenessJson } from "../../api/backoffice/devices.ts";
import type { routesSchema } from "../../contract/cashier.ts";
import { optionalTimestamp } from "../../http/shared-schemas.ts";
import { readinessOf } from "./companion-readiness.ts";

export interface RoutesFacts {
  readonly switches: KillSwitches;
  readonly polledAtMs: (deviceId: number) => number | null;
  readonly nowMs: number;
}

export function routesWire(state: StationState, facts: RoutesFacts): z.infer<typeof routesSchema> {
  const { switches, nowMs } = facts;
  const { organizationId, stationId, status: stationStatus } = state;
  return {
    routes: routeOffers(state, switches).map(({ route, reason, sinceMs }) => ({
      route,
      offered: reason === null,
      reason,
      since: optionalTimestamp(sinceMs),
    })),
    companions: companionOffers(state, switches).map(({ device, reason }) => ({
      device_id: device.deviceId,
      name: device.name,
      liveness: livenessJson(device.liveness),
      ...readinessWire(state, device, facts.polledAtMs(device.deviceId), nowMs),
      blocked_reason: blockedReason({ organizationId, stationId, stationStatus, device }, switches),
      offered: reason === null,
      reason,
    })),
  };
}

function readinessWire(state: StationState, device: StationDevice, polledAtMs: number | null, nowMs: number) {
  const { readiness } = readinessOf(state, device, polledAtMs, nowMs);
  return { readiness, last_polled_at: optionalTimestamp(polledAtMs) };
}
