/** Reading the station log as it is stored, not as somebody tells it. */
import { type Commit, decodeCommit } from "../../machines/station/commit.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { STATION_LOG } from "../../services/bus/streams.ts";
import { STATION_LOG_ALL, stationLogSubject } from "../../services/bus/subjects.ts";

export interface StoredCommit extends Commit {
  readonly sequence: number;
}

/** The commits of a station that the stream still keeps, oldest first. */
export async function readStationLog(bus: Bus, stationId: number): Promise<readonly StoredCommit[]> {
  const commits: StoredCommit[] = [];
  for (let sequence = 1; ; ) {
    const query = { seq: sequence, next_by_subj: stationLogSubject(stationId) };
    const stored = await bus.jsm.direct.getMessage(STATION_LOG.name, query);
    if (stored === null) return commits;
    commits.push({ ...decodeCommit(stored.string()), sequence: stored.seq });
    sequence = stored.seq + 1;
  }
}

/** Of the newest commit of any station. */
export async function newestSequence(bus: Bus): Promise<number> {
  const newest = await bus.jsm.streams.getMessage(STATION_LOG.name, { last_by_subj: STATION_LOG_ALL });
  return newest?.seq ?? 0;
}
