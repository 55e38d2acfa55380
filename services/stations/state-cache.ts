/** The states of the stations that the host used last. The host may drop any state at any time and read it again. */
import { partitionOf } from "../../machines/partition.ts";
import type { StationState } from "../../machines/station/state.ts";
import { STATION_LIMITS } from "./limits.ts";

/** A station as of its newest commit that this host knows; `sequence` 0 and no state when it has none. */
export interface KnownStation {
  readonly state: StationState | null;
  readonly version: number;
  /** The stream sequence of the newest commit: what the next append expects. */
  readonly sequence: number;
  /** When the newest commit was made, so that a station's time never runs backwards. */
  readonly atMs: number;
}

interface Cached {
  known: KnownStation;
  usedAtMs: number;
}

export class StateCache {
  /** In the order of last use. */
  readonly #cached = new Map<number, Cached>();

  get size(): number {
    return this.#cached.size;
  }

  get(stationId: number): KnownStation | undefined {
    const cached = this.#cached.get(stationId);
    if (cached === undefined) return undefined;
    this.#touch(stationId, cached);
    return cached.known;
  }

  set(stationId: number, known: KnownStation): void {
    this.#touch(stationId, { known, usedAtMs: 0 });
    if (this.#cached.size <= STATION_LIMITS.cachedStates) return;
    for (const oldest of this.#cached.keys()) {
      this.#cached.delete(oldest);
      return;
    }
  }

  delete(stationId: number): void {
    this.#cached.delete(stationId);
  }

  /** Drops the states of a partition that this host no longer owns. */
  deletePartition(partition: number): void {
    for (const stationId of this.#cached.keys())
      if (partitionOf(stationId) === partition) this.#cached.delete(stationId);
  }

  /** Drops the states not used after `unusedSinceMs`. A passive station then needs memory only for its deadlines. */
  passivate(unusedSinceMs: number): void {
    for (const [stationId, cached] of this.#cached) {
      if (cached.usedAtMs > unusedSinceMs) return;
      this.#cached.delete(stationId);
    }
  }

  #touch(stationId: number, cached: Cached): void {
    cached.usedAtMs = performance.now();
    this.#cached.delete(stationId);
    this.#cached.set(stationId, cached);
  }
}
