/** Whether robots may be sent at a filial. */
import { requirePermission } from "../../bus/messages/caller.ts";
import type {
  FilialRobotics,
  getFilialRobotics,
  pauseFilialRobotics,
  resumeFilialRobotics,
} from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { insertOutbox } from "../../db/outbox.ts";
import { personActor, recordRoboticsTrail } from "../../db/robotics-trail.ts";
import type { RoboticsDeps } from "../deps.ts";
import { filialEvent } from "../events.ts";
import { type FilialRow, findFilial, lockFilial, updatePaused } from "../sql/filials.ts";

type Using = Pick<RoboticsDeps, "database">;

/** Refuses with `permission_denied` or `not_found`. */
export async function get(
  { database }: Using,
  { caller, filialId }: RequestOf<typeof getFilialRobotics>,
): Promise<ReplyOf<typeof getFilialRobotics>> {
  requirePermission(caller, "organization.manage");
  const row = await findFilial(database, { organizationId: caller.organizationId, filialId });
  if (row === undefined) throw new RefusedError({ code: "not_found" });
  return { robotics: filialOnWire(row) };
}

export const pause = (using: Using, request: RequestOf<typeof pauseFilialRobotics>) => set(using, request, true);
export const resume = (using: Using, request: RequestOf<typeof resumeFilialRobotics>) => set(using, request, false);

/**
 * A pause of what is paused is none: it keeps its reason, and nobody is told again. Once it is answered nothing more is
 * offered or accepted, because both hold the row that this locks. Refuses with `permission_denied` or `not_found`.
 */
async function set(
  { database }: Using,
  { caller, filialId, reason }: RequestOf<typeof pauseFilialRobotics>,
  isPaused: boolean,
): Promise<ReplyOf<typeof pauseFilialRobotics>> {
  requirePermission(caller, "organization.manage");
  const { organizationId, userId, name } = caller;
  const robotics = await database.begin(async (sql) => {
    const row = await lockFilial(sql, { organizationId, filialId });
    if (row === undefined) throw new RefusedError({ code: "not_found" });
    if (row.is_paused === isPaused) return row;
    const changed = await updatePaused(sql, filialId, { isPaused, reason, byId: userId, byName: name });
    await recordRoboticsTrail(sql, {
      organizationId,
      actor: personActor(caller),
      action: isPaused ? "robotics_paused" : "robotics_resumed",
      subject: { kind: "filial_robotics", id: filialId },
      data: { reason },
    });
    const eventType = isPaused ? "robotics.paused" : "robotics.resumed";
    const at = changed.changed_at ?? new Date();
    await insertOutbox(sql, filialEvent({ organizationId, filialId, eventType, at }));
    return changed;
  });
  return { robotics: filialOnWire(robotics) };
}

function filialOnWire(row: FilialRow): FilialRobotics {
  return {
    filialId: row.filial_id,
    paused: row.is_paused,
    changedAtMs: row.changed_at?.getTime() ?? null,
    changedBy: row.changed_by_name,
    reason: row.reason,
  };
}
