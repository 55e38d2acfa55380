/** The routes offered at a station now, with the reason for each that is not. */
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { routesWire } from "./routes-wire.ts";

export const listRoutes: SessionHandler = async (context) => {
  const { deps } = context;
  const state = await ownStation(context);
  return ok(routesWire(state, { switches: deps.switches(), polledAtMs: deps.polledAtMs, nowMs: deps.nowMs() }));
};
