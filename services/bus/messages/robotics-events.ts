/**
 * The events for consumers about serving tasks and robotics (contract, "Events"). The outbox, the stream, the delivered
 * bodies and the documents share one schema per event. A payload has no manifest and no destination, because it is
 * stored and goes to an address that an owner has typed in.
 */
import { z } from "zod";
import { SERVING_TASK_STATUSES, TASK_LEGS } from "../../../machines/serving-task.ts";

const id = z.int().positive();
/** Always in UTC with milliseconds. */
export const eventTime = z.iso.datetime({ precision: 3 });

const taskFields = {
  task_id: id,
  display_number: id,
  leg: z.enum(TASK_LEGS),
  status: z.enum(SERVING_TASK_STATUSES),
};
const endedTask = z.strictObject(taskFields);
const filial = z.strictObject({ filial_id: id });

/** The payload of each event, by its type. */
export const ROBOTICS_PAYLOADS = {
  "serving_task.offered": z.strictObject({ ...taskFields, expires_at: eventTime }),
  "serving_task.cancelled": endedTask,
  "serving_task.expired": endedTask,
  "robotics.paused": filial,
  "robotics.resumed": filial,
} as const;
export const ROBOTICS_EVENT_TYPES = Object.keys(ROBOTICS_PAYLOADS) as readonly (keyof typeof ROBOTICS_PAYLOADS)[];

const facts = {
  organizationId: id,
  filialId: id,
  /** The consumer that receives it; null for every consumer of the filial. */
  consumerId: id.nullable(),
  /** When it happened. */
  createdAt: eventTime,
};
/** An event as its transaction wrote it to the outbox. */
export const roboticsEventSchema = z.discriminatedUnion("eventType", [
  z.object({
    ...facts,
    eventType: z.literal("serving_task.offered"),
    payload: ROBOTICS_PAYLOADS["serving_task.offered"],
  }),
  z.object({ ...facts, eventType: z.literal("serving_task.cancelled"), payload: endedTask }),
  z.object({ ...facts, eventType: z.literal("serving_task.expired"), payload: endedTask }),
  z.object({ ...facts, eventType: z.literal("robotics.paused"), payload: filial }),
  z.object({ ...facts, eventType: z.literal("robotics.resumed"), payload: filial }),
]);
export type RoboticsEvent = z.infer<typeof roboticsEventSchema>;

/** An event in the stream. `eventId` is the id of the outbox row: each publication of the event has the same. */
export const publishedRoboticsEventSchema = z.object({ eventId: id, event: roboticsEventSchema });
export type PublishedRoboticsEvent = z.infer<typeof publishedRoboticsEventSchema>;
