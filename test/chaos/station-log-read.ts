/** Reads the station log as it is stored, without a service. */

import { type Commit, decodeCommit } from "../../machines/station/commit.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { ONE_LOG, STATION_LOG } from "../support/one-log.ts";

export interface StoredCommit extends Commit {
  readonly sequence: number;
}

/** The commits of a station that the stream still keeps, oldest first. */
export async function readStationLog(bus: Bus, stationId: number, logs = ONE_LOG): Promise<readonly StoredCommit[]> {
  const commits: StoredCommit[] = [];
  for (let sequence = 1; ; ) {
    const query = { seq: sequence, next_by_subj: logs.subject(stationId) };
    const stored = await bus.jsm.direct.getMessage(logs.of(stationId).name, query);
    if (stored === null) return commits;
    commits.push({ ...decodeCommit(stored.string()), sequence: stored.seq });
    sequence = stored.seq + 1;
  }
}

/** The sequence of the newest commit in this log. */
export async function newestSequence(bus: Bus, log = STATION_LOG): Promise<number> {
  const newest = await bus.jsm.streams.getMessage(log.name, { last_by_subj: log.commits });
  return newest?.seq ?? 0;
}
