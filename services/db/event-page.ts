/** Pages of an owner's events, which all services of the audit log read alike. */
import type { Queryable } from "./pool.ts";

/** Where a page begins: behind `sinceId`, before `beforeId`, or both; ids of events. */
export interface EventPage {
  readonly sinceId: number | undefined;
  readonly beforeId: number | undefined;
}

/** The last condition of a query by `event_id`, and its order: oldest first with `sinceId`, else newest first. */
export function eventPage(sql: Queryable, { sinceId, beforeId }: EventPage) {
  const before = beforeId === undefined ? sql`` : sql`and event_id < ${beforeId}`;
  return sinceId === undefined
    ? sql`${before} order by event_id desc`
    : sql`and event_id > ${sinceId} ${before} order by event_id`;
}
