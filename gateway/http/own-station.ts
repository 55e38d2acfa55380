/** Finds a station of the caller's organization. The answer for another organization's station is `not_found` too. */
import type { Actor } from "../../machines/actor.ts";
import type { StationState } from "../../machines/station/state.ts";
import { ApiError, type SessionContext } from "./handler-context.ts";

/**
 * The state of the station that `{station_id}` names, from the replica. Throws `not_found`, or `replica_stale` while
 * the replica does not have the station and the registry has not answered that it does not exist.
 */
export async function ownStation(context: SessionContext<unknown, unknown>): Promise<StationState> {
  return await requireOwnStation(context, context.id("station_id"));
}

/** The same for a station that is named elsewhere in the request. */
export async function requireOwnStation(
  { caller, deps }: SessionContext<unknown, unknown>,
  stationId: number,
): Promise<StationState> {
  const station = deps.station(stationId);
  if (station === undefined) throw new ApiError(await deps.whyNoStation(caller, stationId));
  if (station.organizationId !== caller.organizationId) throw new ApiError("not_found");
  return station;
}

/** The person of this session as the actor of a station's command. */
export function cashierActor(context: SessionContext<unknown, unknown>): Actor {
  return { kind: "cashier", id: context.caller.userId, name: context.caller.name };
}
