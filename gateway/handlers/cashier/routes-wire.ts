/** The routes offered at a station and the companions behind `smart_pos`, for the wire. */
import type { z } from "zod";
import { blockedReason, type KillSwitches } from "../../../machines/standing.ts";
import type { StationState } from "../../../machines/station/state.ts";
import { routeOffers } from "../../../machines/views/routes.ts";
import type { routesSchema } from "../../contract/cashier.ts";
import { livenessWire, optionalTimestamp } from "../liveness-wire.ts";

export function routesWire(state: StationState, switches: KillSwitches): z.infer<typeof routesSchema> {
  const { organizationId, stationId, status: stationStatus } = state;
  return {
    routes: routeOffers(state, switches).map(({ route, reason, sinceMs }) => ({
      route,
      offered: reason === null,
      reason,
      since: optionalTimestamp(sinceMs),
    })),
    companions: state.devices
      .filter((device) => device.kind === "smart_pos_companion" && device.status !== "pending")
      .map((device) => ({
        device_id: device.deviceId,
        name: device.name,
        liveness: livenessWire(device.liveness),
        blocked_reason: blockedReason({ organizationId, stationId, stationStatus, device }, switches),
      })),
  };
}
