/** The newest commit of each station as the bytes that the log holds; decoded only when somebody looks (design §2.2). */
import { decodeCommit } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import { STATION_LOG } from "../../services/bus/streams.ts";
import { parseStationId, STATION_LOG_ALL } from "../../services/bus/subjects.ts";
import type { FeedTarget } from "./feed.ts";

export class StationReplica implements FeedTarget {
  readonly stream = STATION_LOG.name;
  readonly filter = STATION_LOG_ALL;
  readonly #commits = new Map<number, Uint8Array>();

  get size(): number {
    return this.#commits.size;
  }

  /** The bytes of the newest commit: a new object for each commit, so that a view made from it can be compared by identity. */
  commit(stationId: number): Uint8Array | undefined {
    return this.#commits.get(stationId);
  }

  /** The newest state, decoded at each call; undefined when there is no such station. */
  state(stationId: number): StationState | undefined {
    const commit = this.#commits.get(stationId);
    return commit === undefined ? undefined : stateOf(commit);
  }

  reset(): void {
    this.#commits.clear();
  }

  apply(subject: string, data: Uint8Array): void {
    const stationId = parseStationId(subject);
    if (data.length === 0) {
      this.#commits.delete(stationId);
      return;
    }
    // A copy of its own, without the pool: a slice of the socket's buffer would keep all of that alive.
    const commit = Buffer.allocUnsafeSlow(data.length);
    commit.set(data);
    this.#commits.set(stationId, commit);
  }
}

/** The state in a commit's bytes. */
export function stateOf(commit: Uint8Array): StationState {
  return decodeCommit(Buffer.from(commit.buffer, commit.byteOffset, commit.length).toString("utf8")).state;
}
