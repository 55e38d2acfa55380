/** A station's standing: suspend, resume, close for good. */
import type { StationStandingEvent } from "../../../machines/standing.ts";
import { moveStation } from "../../../services/bus/messages/stations.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { stationWire } from "./place-wire.ts";

/** Refusal: `conflict` for a move that the station's standing does not have. */
export const moveOwnStation =
  (move: StationStandingEvent["type"]): SessionHandler =>
  async (context) => {
    const { caller, deps } = context;
    const { station } = await deps.bus.call(moveStation, { caller, stationId: context.id("station_id"), move });
    return ok(stationWire(station));
  };
