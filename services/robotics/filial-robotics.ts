/** Pauses and resumes the robotics of a filial. */
import { personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as messages from "../bus/messages/filial-robotics.ts";
import type { Handler, ReplyOf, RequestOf } from "../bus/operation.ts";
import { existing } from "../bus/refusals.ts";
import { insertOutbox } from "../db/outbox.ts";
import { recordRoboticsAction } from "../db/robotics-audit-log.ts";
import type { RoboticsDeps } from "./deps.ts";
import { filialEvent } from "./events.ts";
import * as sql from "./sql/filial-robotics.ts";

type Deps = Pick<RoboticsDeps, "database">;
type PauseRequest = RequestOf<typeof messages.pauseFilialRobotics>;
type Reply = ReplyOf<typeof messages.getFilialRobotics>;

/** Refuses with `permission_denied` or `not_found`. */
export const getFilialRobotics: Handler<Deps, typeof messages.getFilialRobotics> = async ({ database }, request) => {
  const { caller, filialId } = request;
  requirePermission(caller, "organization.manage");
  const row = existing(await sql.getFilialRobotics(database, { organizationId: caller.organizationId, filialId }));
  return { robotics: roboticsOf(row) };
};

export const pauseFilialRobotics = (deps: Deps, request: PauseRequest) => setPaused(deps, request, true);
export const resumeFilialRobotics = (deps: Deps, request: PauseRequest) => setPaused(deps, request, false);

/**
 * A pause of a paused filial changes nothing: it keeps the first reason and sends no event. After the answer to a pause
 * no task is offered or accepted, because an offer and an acceptance lock the same row. Refuses with `permission_denied` or
 * `not_found`.
 */
async function setPaused(
  { database }: Deps,
  { caller, filialId, reason }: PauseRequest,
  isPaused: boolean,
): Promise<Reply> {
  const { organizationId, userId, name } = requirePermission(caller, "organization.manage");
  const robotics = await database.begin(async (transaction) => {
    const row = existing(await sql.lockFilial(transaction, { organizationId, filialId }));
    if (row.is_paused === isPaused) return row;
    const changed = await sql.setPaused(transaction, filialId, { isPaused, reason, byId: userId, byName: name });
    await recordRoboticsAction(transaction, {
      organizationId,
      actor: personActor(caller),
      action: isPaused ? "robotics_paused" : "robotics_resumed",
      subject: { kind: "filial_robotics", id: filialId },
      data: { reason },
    });
    const eventType = isPaused ? "robotics.paused" : "robotics.resumed";
    const at = changed.changed_at ?? new Date();
    await insertOutbox(transaction, filialEvent({ organizationId, filialId, eventType, at }));
    return changed;
  });
  return { robotics: roboticsOf(robotics) };
}

function roboticsOf(row: sql.FilialRow): messages.FilialRobotics {
  return {
    filialId: row.filial_id,
    paused: row.is_paused,
    changedAtMs: row.changed_at?.getTime() ?? null,
    changedBy: row.changed_by_name,
    reason: row.reason,
  };
}
