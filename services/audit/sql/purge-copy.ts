/** Removing what is past its retention. Each statement takes a bounded batch and says how many rows went. */
import type { Database } from "../../db/pool.ts";

interface Bounds {
  readonly olderThanDays: number;
  readonly rows: number;
}

export async function purgeEvents(database: Database, { olderThanDays, rows }: Bounds): Promise<number> {
  const purged = await database`
    delete from station_events where (station_id, version, ordinal) in (
      select station_id, version, ordinal from station_events
      where at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return purged.count;
}

export async function purgeIntents(database: Database, { olderThanDays, rows }: Bounds): Promise<number> {
  const purged = await database`
    delete from intent_history where intent_id in (
      select intent_id from intent_history
      where at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return purged.count;
}
