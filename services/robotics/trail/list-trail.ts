import { BOUNDS } from "../../bus/bounds.ts";
import { requirePermission } from "../../bus/messages/caller.ts";
import type { listRoboticsTrail, RoboticsTrailEntry } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import type { RoboticsDeps } from "../deps.ts";
import { selectTrail, type TrailRow } from "../sql/trail.ts";

/** Newest first. Refuses with `permission_denied`. */
export async function listTrail(
  { database }: Pick<RoboticsDeps, "database">,
  { caller, beforeId, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listRoboticsTrail>,
): Promise<ReplyOf<typeof listRoboticsTrail>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const rows = await selectTrail(database, { organizationId, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(entryOnWire), limit);
  return { entries: page, hasMore };
}

function entryOnWire(row: TrailRow): RoboticsTrailEntry {
  return {
    eventId: row.event_id,
    atMs: row.at.getTime(),
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id },
    data: row.data,
  };
}
