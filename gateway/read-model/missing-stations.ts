/**
 * The error for a station that the replica does not have. The bus may have lost the station, and only the registry knows whether
 * it exists.
 */
import type { SessionEntry } from "../../services/bus/messages/sessions.ts";
import { getStation } from "../../services/bus/messages/stations.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import type { GatewayBus } from "../http/handler-context.ts";
import { LIMITS } from "../limits.ts";

type WhyNoStation = "not_found" | "replica_stale";

export class MissingStations {
  readonly #bus: Pick<GatewayBus, "call">;
  /** Pending requests by organization and station. A further request for the same station gets the same answer. */
  readonly #asking = new Map<string, Promise<WhyNoStation>>();

  constructor(bus: Pick<GatewayBus, "call">) {
    this.#bus = bus;
  }

  /** `not_found` when the registry reports that the caller's organization has no such station, otherwise `replica_stale`. */
  async whyNone(caller: SessionEntry, stationId: number): Promise<WhyNoStation> {
    const name = `${caller.organizationId}.${stationId}`;
    const asked = this.#asking.get(name);
    if (asked !== undefined) return await asked;
    if (this.#asking.size >= LIMITS.missingStationsAsked) return "replica_stale";
    const asking = this.#ask(caller, stationId).finally(() => this.#asking.delete(name));
    this.#asking.set(name, asking);
    return await asking;
  }

  async #ask(caller: SessionEntry, stationId: number): Promise<WhyNoStation> {
    try {
      await this.#bus.call(getStation, { caller, stationId }, LIMITS.missingStationMs);
      return "replica_stale";
    } catch (error) {
      return error instanceof RefusedError && error.refusal.code === "not_found" ? "not_found" : "replica_stale";
    }
  }
}
