/** What a batch of commits adds to the audit copy, in the order of the stream. Pure. */
import { type CopiedCommit, commitRows, type EventRow, type IntentRow } from "./commit-rows.ts";

export interface Gap {
  readonly stationId: number;
  readonly fromVersion: number;
  readonly toVersion: number;
}

/** How far a station's trail has come. */
export interface TrailHead {
  /** The newest version in the trail. */
  readonly version: number;
  /** What the trail's versions are ahead of the log's; null until the first commit after a loss tells. */
  readonly offset: number | null;
}

/** How far a station in the batch is copied. */
export interface HeadRow {
  readonly station_id: number;
  /** The newest version in the trail. */
  readonly version: number;
  readonly version_offset: number;
  /** Where that commit stands in the stream. */
  readonly stream_sequence: number;
}

export interface BatchRows {
  readonly events: readonly EventRow[];
  /** One row an intent: the newest. */
  readonly intents: readonly IntentRow[];
  readonly heads: readonly HeadRow[];
  readonly gaps: readonly Gap[];
}

const NO_TRAIL: TrailHead = { version: 0, offset: 0 };

/** `before` holds the trails' heads as they were, by station. */
export function batchRows(commits: readonly CopiedCommit[], before: ReadonlyMap<number, TrailHead>): BatchRows {
  const heads = new Map<number, HeadRow>();
  const events: EventRow[] = [];
  const intents = new Map<number, IntentRow>();
  const gaps: Gap[] = [];
  for (const copied of commits) {
    const { version } = copied.commit;
    const { stationId } = copied.commit.state;
    const head = headOf(heads.get(stationId)) ?? before.get(stationId) ?? NO_TRAIL;
    // After a loss the next commit continues the trail, although its version was used before.
    const offset = head.offset ?? head.version + 1 - version;
    const trailVersion = version + offset;
    const rows = commitRows({ ...copied, trailVersion }, head.version);
    if (trailVersion > head.version + 1) {
      gaps.push({ stationId, fromVersion: head.version + 1, toVersion: trailVersion - 1 });
    }
    events.push(...rows.events);
    for (const row of rows.intents) intents.set(row.intent_id, row);
    heads.set(stationId, {
      station_id: stationId,
      version: Math.max(trailVersion, head.version),
      version_offset: offset,
      stream_sequence: copied.streamSequence,
    });
  }
  return {
    events,
    intents: [...intents.values()],
    heads: [...heads.values()],
    gaps,
  };
}

function headOf(row: HeadRow | undefined): TrailHead | undefined {
  return row && { version: row.version, offset: row.version_offset };
}
