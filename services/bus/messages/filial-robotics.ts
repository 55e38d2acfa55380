/**
 * Whether robotics is paused at a filial. Each operation needs `organization.manage`. A filial of another organization
 * is `not_found`.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";
import { reasonSchema as reason } from "./sentence.ts";

const filialId = z.int().positive();

export const filialRoboticsSchema = z.object({
  filialId,
  paused: z.boolean(),
  /** Null when it was never changed. */
  changedAtMs: z.number().nullable(),
  changedBy: z.string().nullable(),
  reason: z.string().nullable(),
});
export type FilialRobotics = z.infer<typeof filialRoboticsSchema>;
const reply = z.object({ robotics: filialRoboticsSchema });

export const getFilialRobotics = repeatable("robotics.getFilialRobotics", z.object({ caller, filialId }), reply);
/** While robotics is paused it changes nothing and sends no event. */
export const pauseFilialRobotics = once("robotics.pauseFilialRobotics", z.object({ caller, filialId, reason }), reply);
export const resumeFilialRobotics = once(
  "robotics.resumeFilialRobotics",
  z.object({ caller, filialId, reason }),
  reply,
);
