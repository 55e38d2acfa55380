/** A station as a cashier chooses one: what it is, whether it may collect, and who drives it. */
import type { z } from "zod";
import { blockedReason, type KillSwitches } from "../../../machines/standing.ts";
import type { StationState } from "../../../machines/station/state.ts";
import type { Station } from "../../../services/bus/messages/stations.ts";
import type { cashierStationSchema } from "../../contract/cashier.ts";
import { leaseWire } from "./lease-wire.ts";

/** `state` is undefined while the station's first commit is still on its way. */
export function cashierStationWire(
  station: Station,
  state: StationState | undefined,
  facts: { readonly switches: KillSwitches; readonly userId: number; readonly nowMs: number; organizationId: number },
): z.infer<typeof cashierStationSchema> {
  const { stationId, status: stationStatus } = station;
  return {
    station_id: stationId,
    filial_id: station.filialId,
    name: station.name,
    currency: station.currency,
    status: stationStatus,
    sandbox: station.sandbox,
    blocked_reason: blockedReason({ organizationId: facts.organizationId, stationId, stationStatus }, facts.switches),
    lease: leaseWire(state?.lease ?? null, facts),
    active_intent_id: state?.intent?.intentId ?? null,
  };
}
