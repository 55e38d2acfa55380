/** The audit trail as rows, so that what was there before can be looked for to the letter afterwards. */
import type postgres from "postgres";
import { expect } from "vitest";

export interface TrailEvent {
  readonly stationId: number;
  readonly version: number;
  readonly type: string;
  /** The whole row, in one form. */
  readonly text: string;
}

/** Everything, station after station, in the order of the versions. */
export async function readTrail(sql: postgres.Sql): Promise<readonly TrailEvent[]> {
  const rows = await sql<{ station_id: string; version: string; type: string; text: string }[]>`
    select station_id, version, type, to_jsonb(e)::text as text from station_events e
    order by station_id, version, ordinal`;
  return rows.map((row) => ({
    stationId: Number(row.station_id),
    version: Number(row.version),
    type: row.type,
    text: row.text,
  }));
}

/** What has come to the trail since. Fails unless everything that was there still is, unchanged and in front of it. */
export function newTrailOf(before: readonly TrailEvent[], now: readonly TrailEvent[]): readonly TrailEvent[] {
  const known = new Set(before.map(({ text }) => text));
  expect(now.filter(({ text }) => known.has(text))).toEqual(before);
  const added = now.filter(({ text }) => !known.has(text));
  const newest = new Map(before.map(({ stationId, version }) => [stationId, version]));
  for (const { stationId, version } of added) expect(version).toBeGreaterThan(newest.get(stationId) ?? 0);
  return added;
}
