/** The stations of the cashier's organization, by id. */
import type { z } from "zod";
import { listStations } from "../../../services/bus/messages/stations.ts";
import type { cashierStationsQuerySchema } from "../../contract/cashier.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { cashierStationWire } from "./station-wire.ts";

type Query = z.infer<typeof cashierStationsQuerySchema>;

export const listCashierStations: SessionHandler<undefined, Query> = async ({ caller, deps, query }) => {
  const { since_id: sinceId, limit } = query;
  const { stations, hasMore } = await deps.bus.call(listStations, { caller, sinceId, limit });
  const { userId, organizationId } = caller;
  const facts = { switches: deps.switches(), nowMs: deps.nowMs(), userId, organizationId };
  return ok({
    stations: stations.map((station) => cashierStationWire(station, deps.station(station.stationId), facts)),
    has_more: hasMore,
  });
};
