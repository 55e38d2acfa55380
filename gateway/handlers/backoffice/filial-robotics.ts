/** Whether robots may be sent at a filial, and who changed what about robotics. */
import type { z } from "zod";
import {
  type FilialRobotics,
  getFilialRobotics,
  listRoboticsTrail,
  pauseFilialRobotics,
  resumeFilialRobotics,
} from "../../../services/bus/messages/robotics.ts";
import type {
  filialRoboticsSchema,
  roboticsEventsQuerySchema,
  roboticsReasonBodySchema,
} from "../../contract/robotics.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { actorJson, toTimestamp } from "../../http/shared-schemas.ts";

export const getOwnFilialRobotics: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { robotics } = await deps.bus.call(getFilialRobotics, { caller, filialId: context.id("filial_id") });
  return ok(filialWire(robotics));
};

const change =
  (
    operation: typeof pauseFilialRobotics | typeof resumeFilialRobotics,
  ): SessionHandler<z.infer<typeof roboticsReasonBodySchema>> =>
  async (context) => {
    const { caller, deps, body } = context;
    const request = { caller, filialId: context.id("filial_id"), reason: body.reason };
    return ok(filialWire((await deps.bus.call(operation, request)).robotics));
  };
export const pauseOwnFilialRobotics = change(pauseFilialRobotics);
export const resumeOwnFilialRobotics = change(resumeFilialRobotics);

export const listOwnRoboticsEvents: SessionHandler<undefined, z.infer<typeof roboticsEventsQuerySchema>> = async (
  context,
) => {
  const { caller, deps, query } = context;
  const { before_id: beforeId, limit } = query;
  const { entries, hasMore } = await deps.bus.call(listRoboticsTrail, { caller, beforeId, limit });
  return ok({
    events: entries.map(({ eventId, atMs, actor, action, subject, data }) => ({
      event_id: eventId,
      at: toTimestamp(atMs),
      actor: actorJson(actor),
      action,
      subject,
      data,
    })),
    has_more: hasMore,
  });
};

function filialWire(robotics: FilialRobotics): z.infer<typeof filialRoboticsSchema> {
  const { filialId, paused, changedAtMs, changedBy, reason } = robotics;
  return {
    filial_id: filialId,
    paused,
    changed_at: changedAtMs === null ? null : toTimestamp(changedAtMs),
    changed_by: changedBy,
    reason,
  };
}
