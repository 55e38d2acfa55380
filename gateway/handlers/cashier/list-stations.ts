/** The stations of the cashier's organization, by id. */
import { listStations } from "../../../services/bus/messages/registry.ts";
import { ok, type SessionHandler } from "../context.ts";
import { cashierStationWire } from "./station-wire.ts";

export const listCashierStations: SessionHandler = async ({ caller, deps }) => {
  const { stations } = await deps.bus.call(listStations, { caller });
  const { userId, organizationId } = caller;
  const facts = { switches: deps.switches(), nowMs: deps.nowMs(), userId, organizationId };
  return ok({
    stations: stations.map((station) => cashierStationWire(station, deps.station(station.stationId), facts)),
  });
};
