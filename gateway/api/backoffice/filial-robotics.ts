/** Robotics at a filial: the owner reads whether it is paused, pauses it and resumes it. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/filial-robotics.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, optionalTimestamp, reasonSchema, timestampSchema } from "../../http/shared-schemas.ts";

/** The body of a request that needs only a reason: cancel a task, pause robotics, resume robotics. */
export const roboticsReasonBodySchema = z
  .strictObject({ reason: reasonSchema })
  .meta({ id: "RoboticsReason", examples: [{ reason: "A guest has fallen in the aisle." }] });

const filialRoboticsSchema = z
  .object({
    filial_id: idSchema,
    paused: z.boolean().meta({
      description: "While true, the filial's tasks are neither offered nor accepted; tasks under way continue.",
    }),
    changed_at: timestampSchema.nullable().meta({ description: "Null when robotics was never paused at the filial." }),
    changed_by: z.string().nullable(),
    reason: z.string().nullable().meta({ description: "The reason of the last change." }),
  })
  .meta({ id: "FilialRobotics" });

function filialRoboticsJson(robotics: messages.FilialRobotics): z.infer<typeof filialRoboticsSchema> {
  const { filialId, paused, changedAtMs, changedBy, reason } = robotics;
  return {
    filial_id: filialId,
    paused,
    changed_at: optionalTimestamp(changedAtMs),
    changed_by: changedBy,
    reason,
  };
}

const getFilialRobotics: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, filialId: context.id("filial_id") };
  return ok(filialRoboticsJson((await deps.bus.call(messages.getFilialRobotics, request)).robotics));
};

const change =
  (
    operation: typeof messages.pauseFilialRobotics | typeof messages.resumeFilialRobotics,
  ): SessionHandler<z.infer<typeof roboticsReasonBodySchema>> =>
  async (context) => {
    const { caller, deps, body } = context;
    const request = { caller, filialId: context.id("filial_id"), reason: body.reason };
    return ok(filialRoboticsJson((await deps.bus.call(operation, request)).robotics));
  };

const robotics = "/api/backoffice/v1/filials/{filial_id}/robotics" as const;
const reply = { 200: { description: "Robotics at the filial after the change.", schema: filialRoboticsSchema } };

export const filialRoboticsRoutes = [
  backofficeRoute({
    method: "GET",
    path: `${robotics}/`,
    operation: "getFilialRobotics",
    summary: "Read whether robotics is paused at a filial",
    description:
      "The answer also names who changed it last, when and why. `paused` is false for a filial that was never paused.",
    replies: { 200: { description: "Robotics at the filial.", schema: filialRoboticsSchema } },
    errors: ["not_found"],
    handler: getFilialRobotics,
  }),
  backofficeRoute({
    method: "POST",
    path: `${robotics}/pause/`,
    operation: "pauseFilialRobotics",
    summary: "Pause robotics at a filial",
    description:
      "After the answer to this request, tasks at the filial are neither offered nor accepted. Tasks under way can be completed or cancelled; offers expire as before. Pausing a paused filial changes nothing.",
    body: roboticsReasonBodySchema,
    replies: reply,
    errors: ["not_found"],
    handler: change(messages.pauseFilialRobotics),
  }),
  backofficeRoute({
    method: "POST",
    path: `${robotics}/resume/`,
    operation: "resumeFilialRobotics",
    summary: "Resume robotics at a filial",
    description: "Resuming a filial that is not paused changes nothing.",
    body: roboticsReasonBodySchema,
    replies: reply,
    errors: ["not_found"],
    handler: change(messages.resumeFilialRobotics),
  }),
];
