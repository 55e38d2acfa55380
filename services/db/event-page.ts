/** Pages of an owner's events, which all services of the audit log read alike. */
import type { Queryable } from "./pool.ts";

/** Where a page begins: behind `sinceId`, before `beforeId`, or both; ids of events. */
export interface EventPage {
  readonly sinceId: number | undefined;
  readonly beforeId: number | undefined;
  /** Only entries that contain it. */
  readonly search: string | undefined;
}

const patternOf = (text: string): string => `%${text.replaceAll("_", " ").replaceAll(/[\\%]/g, String.raw`\$&`)}%`;

/**
 * Whether an entry contains what a person searches for. They read `device_suspended` as "device suspended", so an underscore
 * is a space. Entries are read one by one, the newest first, until the page is full.
 */
function containing(sql: Queryable, search: string | undefined) {
  if (search === undefined) return sql``;
  // Data is searched as JSON, which writes quotes and backslashes in its own way.
  const inData = patternOf(JSON.stringify(search).slice(1, -1));
  return sql`
    and (replace(concat_ws(' ', actor_name, action, subject_kind, subject_id), '_', ' ') ilike ${patternOf(search)}
      or replace(data::text, '_', ' ') ilike ${inData})`;
}

/** The last conditions of a query by `event_id`, and its order: oldest first with `sinceId`, else newest first. */
export function eventPage(sql: Queryable, { sinceId, beforeId, search }: EventPage) {
  const before = beforeId === undefined ? sql`` : sql`and event_id < ${beforeId}`;
  const found = containing(sql, search);
  return sinceId === undefined
    ? sql`${before} ${found} order by event_id desc`
    : sql`and event_id > ${sinceId} ${before} ${found} order by event_id`;
}
