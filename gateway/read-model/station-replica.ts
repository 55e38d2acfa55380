/** The newest commit of each station, as the bytes from the log. A read decodes them (design §2.2). */
import { decodeCommit } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import type { StationLogDefinition, StationLogs } from "../../services/bus/streams.ts";
import { parseStationId } from "../../services/bus/subjects.ts";
import type { FeedTarget } from "./replica-feed.ts";

/** The place of a station's newest commit. It never changes, so a poll need not search for it again. */
export interface StationCell {
  /** A new object for each commit, so that the view cache can compare commits by identity. Undefined after a reset. */
  commit: Uint8Array | undefined;
}

export class StationReplica {
  /** One target for each log. */
  readonly targets: readonly FeedTarget[];
  readonly #logs: StationLogs;
  readonly #cells = new Map<number, StationCell>();
  readonly #listeners = new Set<(stationId: number) => void>();

  constructor(logs: StationLogs) {
    this.#logs = logs;
    this.targets = logs.all.map((log) => ({
      stream: log.name,
      filter: log.commitsAndBeats,
      beats: log.beats,
      reset: () => this.#reset(log),
      apply: (subject, data) => this.#apply(subject, data),
    }));
  }

  get size(): number {
    return this.#cells.size;
  }

  /** The replica calls `listener` with each station that has a new commit or has lost its commit. */
  onChange(listener: (stationId: number) => void): void {
    this.#listeners.add(listener);
  }

  cell(stationId: number): StationCell | undefined {
    return this.#cells.get(stationId);
  }

  /** The newest state, decoded at each call; undefined when there is no such station. */
  state(stationId: number): StationState | undefined {
    const commit = this.#cells.get(stationId)?.commit;
    return commit === undefined ? undefined : stateOf(commit);
  }

  /** Drops the commits of all stations of this log. */
  #reset(log: StationLogDefinition): void {
    for (const [stationId, cell] of this.#cells) {
      if (this.#logs.of(stationId) !== log) continue;
      cell.commit = undefined;
      this.#cells.delete(stationId);
    }
  }

  #apply(subject: string, data: Uint8Array): void {
    const stationId = parseStationId(subject);
    const cell = this.#cells.get(stationId);
    if (data.length === 0) {
      if (cell !== undefined) cell.commit = undefined;
      this.#cells.delete(stationId);
      this.#notify(stationId);
      return;
    }
    // A copy outside of Node's pool: a slice of the socket's buffer would keep the whole buffer in memory.
    const commit = Buffer.allocUnsafeSlow(data.length);
    commit.set(data);
    if (cell === undefined) this.#cells.set(stationId, { commit });
    else cell.commit = commit;
    this.#notify(stationId);
  }

  #notify(stationId: number): void {
    for (const listener of this.#listeners) listener(stationId);
  }
}

/** The state in a commit's bytes. */
export function stateOf(commit: Uint8Array): StationState {
  return decodeCommit(Buffer.from(commit.buffer, commit.byteOffset, commit.length).toString("utf8")).state;
}
