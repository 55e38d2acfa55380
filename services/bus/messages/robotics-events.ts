/**
 * What consumers receive about serving tasks and robotics (contract, "Events"). One schema each for the outbox, the
 * stream, the delivered bodies and the documents. A payload has exactly these fields: there is deliberately no manifest
 * and no destination, because deliveries go to an address that an owner typed in and are stored.
 */
import { z } from "zod";
import { SERVING_TASK_STATUSES, TASK_LEGS } from "../../../machines/serving-task.ts";

const id = z.int().positive();
/** Milliseconds and UTC, always. */
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
export const ROBOTICS_EVENT_TYPES = [
  "serving_task.offered",
  "serving_task.cancelled",
  "serving_task.expired",
  "robotics.paused",
  "robotics.resumed",
] as const satisfies readonly (keyof typeof ROBOTICS_PAYLOADS)[];

const facts = {
  organizationId: id,
  filialId: id,
  /** Whom it concerns; null is every consumer of the filial. */
  consumerId: id.nullable(),
  /** When it happened. */
  createdAt: eventTime,
};
/** An event as the transaction that made it wrote it. */
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

/** As it stands in the stream: with the id of its outbox row, which is the same however often it is published. */
export const publishedRoboticsEventSchema = z.object({ eventId: id, event: roboticsEventSchema });
export type PublishedRoboticsEvent = z.infer<typeof publishedRoboticsEventSchema>;
