/** The audit log as rows, so that a test can find each earlier row unchanged. */
import type postgres from "postgres";
import { expect } from "vitest";

export interface AuditEvent {
  readonly stationId: number;
  readonly version: number;
  readonly type: string;
  /** The whole row as text. */
  readonly text: string;
}

/** All rows, station after station, in the order of the versions. */
export async function readAuditLog(sql: postgres.Sql): Promise<readonly AuditEvent[]> {
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

/** The events that were added since `before`. Fails unless `now` begins with all events of `before`, unchanged. */
export function newEventsOf(before: readonly AuditEvent[], now: readonly AuditEvent[]): readonly AuditEvent[] {
  const known = new Set(before.map(({ text }) => text));
  expect(now.filter(({ text }) => known.has(text))).toEqual(before);
  const added = now.filter(({ text }) => !known.has(text));
  const newest = new Map(before.map(({ stationId, version }) => [stationId, version]));
  for (const { stationId, version } of added) expect(version).toBeGreaterThan(newest.get(stationId) ?? 0);
  return added;
}
