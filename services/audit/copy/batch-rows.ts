/** What a batch of commits adds to the audit copy, in the order of the stream. Pure. */
import { type CommandRow, type CopiedCommit, commitRows, type EventRow, type IntentRow } from "./commit-rows.ts";

export interface Gap {
  readonly stationId: number;
  readonly fromVersion: number;
  readonly toVersion: number;
}

/** How far a station in the batch is copied. */
export interface HeadRow {
  readonly station_id: number;
  /** The newest version that was ever copied. */
  readonly version: number;
  /** The newest version copied of the log as it is now, which may be a younger log. */
  readonly log_version: number;
}

export interface BatchRows {
  readonly events: readonly EventRow[];
  readonly commands: readonly CommandRow[];
  /** One row an intent: the newest. */
  readonly intents: readonly IntentRow[];
  readonly heads: readonly HeadRow[];
  readonly gaps: readonly Gap[];
}

/** `heads` holds the newest version that was copied before, by station. */
export function batchRows(commits: readonly CopiedCommit[], heads: ReadonlyMap<number, number>): BatchRows {
  const newest = new Map(heads);
  const events: EventRow[] = [];
  const commands = new Map<string, CommandRow>();
  const intents = new Map<number, IntentRow>();
  const gaps: Gap[] = [];
  const logVersions = new Map<number, number>();
  for (const copied of commits) {
    const { version, state } = copied.commit;
    const { stationId } = state;
    const previousVersion = newest.get(stationId) ?? 0;
    const rows = commitRows(copied, previousVersion);
    if (version > previousVersion + 1) {
      gaps.push({ stationId, fromVersion: previousVersion + 1, toVersion: version - 1 });
    }
    events.push(...rows.events);
    // The first answer to a command is the answer.
    for (const row of rows.commands) {
      const key = `${row.station_id} ${row.command_id}`;
      if (!commands.has(key)) commands.set(key, row);
    }
    for (const row of rows.intents) intents.set(row.intent_id, row);
    newest.set(stationId, Math.max(version, previousVersion));
    logVersions.set(stationId, version);
  }
  return {
    events,
    commands: [...commands.values()],
    intents: [...intents.values()],
    heads: [...logVersions].map(([station_id, log_version]) => ({
      station_id,
      version: newest.get(station_id) ?? log_version,
      log_version,
    })),
    gaps,
  };
}
