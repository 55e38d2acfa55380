/** Deletes what is past its retention, up to `rows` rows at a time. Each returns how many rows it has deleted. */
import type { Database } from "../../db/pool.ts";

interface Bounds {
  readonly olderThanDays: number;
  readonly rows: number;
}

export async function deleteOldEvents(database: Database, { olderThanDays, rows }: Bounds): Promise<number> {
  const deleted = await database`
    delete from station_events where (station_id, version, ordinal) in (
      select station_id, version, ordinal from station_events
      where at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}

export async function deleteOldIntents(database: Database, { olderThanDays, rows }: Bounds): Promise<number> {
  const deleted = await database`
    delete from intent_history where intent_id in (
      select intent_id from intent_history
      where at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}
