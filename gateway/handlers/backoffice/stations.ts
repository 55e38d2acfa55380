/** Stations: list, add, read, rename. A foreign one is `not_found`. */
import type { z } from "zod";
import { createStation, getStation, listStations, renameStation } from "../../../services/bus/messages/stations.ts";
import type {
  createStationBodySchema,
  renameStationBodySchema,
  stationsQuerySchema,
} from "../../contract/backoffice.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { stationWire } from "./place-wire.ts";

export const listOwnStations: SessionHandler<undefined, z.infer<typeof stationsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { filial_id: filialId, since_id: sinceId, limit } = query;
  const { stations, hasMore } = await deps.bus.call(listStations, { caller, filialId, sinceId, limit });
  return ok({ stations: stations.map(stationWire), has_more: hasMore });
};

/** Refusal: `not_found` for the filial. */
export const createOwnStation: SessionHandler<z.infer<typeof createStationBodySchema>> = async (context) => {
  const { filial_id: filialId, name, currency } = context.body;
  const { caller, deps } = context;
  const { station } = await deps.bus.call(createStation, { caller, filialId, name, currency });
  return created(stationWire(station));
};

export const getOwnStation: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { station } = await deps.bus.call(getStation, { caller, stationId: context.id("station_id") });
  return ok(stationWire(station));
};

export const renameOwnStation: SessionHandler<z.infer<typeof renameStationBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const stationId = context.id("station_id");
  const { station } = await deps.bus.call(renameStation, { caller, stationId, name: body.name });
  return ok(stationWire(station));
};
