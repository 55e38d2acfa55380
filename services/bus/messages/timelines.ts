/** One payment, explained step by step from the audit copy of the stations' logs. */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { actorSchema, callerSchema } from "./caller.ts";

const id = z.int().positive();
/** `maybe` when only evidence shows that money moved. */
const moneyMoved = z.enum(["no", "yes", "maybe"]);
export type MoneyMoved = z.infer<typeof moneyMoved>;

const timelineEntrySchema = z.object({
  atMs: z.number(),
  type: z.string(),
  actor: actorSchema,
  /** One sentence that a person understands without the manual. */
  sentence: z.string(),
  /** Whether money moved in this step. */
  moneyMoved,
  data: z.record(z.string(), z.unknown()),
});

const timelineSchema = z.object({
  intentId: id,
  stationId: id,
  status: z.string(),
  /** The whole payment in a few sentences. */
  summary: z.string(),
  moneyMoved,
  /** The creation first, then all others in the order of time, also those after the end. */
  entries: z.array(timelineEntrySchema),
});
export type Timeline = z.infer<typeof timelineSchema>;

/**
 * Refuses with `not_found` for an intent of another organization, and with `unavailable` while the copy may not have
 * the intent yet.
 */
export const getIntentTimeline = repeatable(
  "audit.getIntentTimeline",
  z.object({ caller: callerSchema, intentId: id }),
  timelineSchema,
);
