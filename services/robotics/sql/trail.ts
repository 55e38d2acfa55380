import type { RoboticsTrailEntry } from "../../bus/messages/robotics.ts";
import type { Queryable } from "../../db/pool.ts";

export interface TrailRow {
  readonly event_id: number;
  readonly at: Date;
  readonly actor_kind: RoboticsTrailEntry["actor"]["kind"];
  readonly actor_id: number;
  readonly actor_name: string;
  readonly action: string;
  readonly subject_kind: RoboticsTrailEntry["subject"]["kind"];
  readonly subject_id: number;
  readonly data: Record<string, unknown>;
}

/** The organization's entries before one of them, newest first. */
export async function selectTrail(
  sql: Queryable,
  page: { readonly organizationId: number; readonly beforeId: number | undefined; readonly limit: number },
): Promise<TrailRow[]> {
  const before = page.beforeId === undefined ? sql`` : sql`and event_id < ${page.beforeId}`;
  return sql<TrailRow[]>`
    select event_id, at, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data from robotics_trail
    where organization_id = ${page.organizationId} ${before} order by event_id desc limit ${page.limit}`;
}
