/**
 * Serving tasks for robots. The owner offers and cancels them, and needs `organization.manage`. A consumer reads,
 * accepts and completes them. Lists come in pages. The id of another organization or consumer is `not_found`.
 */
import { z } from "zod";
import { SERVING_TASK_STATUSES, TASK_LEGS } from "../../../machines/serving-task.ts";
import { BOUNDS } from "../bounds.ts";
import { repeatable, repeatableWithKey } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { callerSchema } from "./caller.ts";
import { consumerCallerSchema } from "./consumers.ts";
import { idempotencyKeySchema } from "./creation.ts";
import { nameSchema as name } from "./name.ts";
import { detailsSchema, reasonSchema as reason } from "./sentence.ts";

const id = z.int().positive();
const caller = callerSchema;
const consumer = consumerCallerSchema;
const hasMore = z.boolean();

/** One item to carry, and how many. */
const manifestLineSchema = z.object({ name, quantity: z.int().min(1).max(BOUNDS.lineQuantity) });
/** Where the robot goes: a table, a counter, or a guest's address on courier legs. Webhooks never contain it. */
const destinationSchema = z.object({ name, details: detailsSchema.optional() });

export const servingTaskSchema = z.object({
  taskId: id,
  displayNumber: id,
  filialId: id,
  consumerId: id,
  leg: z.enum(TASK_LEGS),
  status: z.enum(SERVING_TASK_STATUSES),
  // No rules here: stored texts stay readable when the rules for new texts change.
  manifest: z.array(z.object({ name: z.string(), quantity: z.int() })),
  destination: z.object({ name: z.string(), details: z.string().optional() }),
  offeredAtMs: z.number(),
  /** Until when the offer may be accepted. */
  expiresAtMs: z.number(),
  acceptedAtMs: z.number().nullable(),
  endedAtMs: z.number().nullable(),
  /** Why the owner cancelled the task. */
  cancelReason: z.string().nullable(),
});
export type ServingTask = z.infer<typeof servingTaskSchema>;
const taskReply = z.object({ task: servingTaskSchema });

/**
 * Offers a task to a consumer. With a key, a repetition returns the task of the first request. Refuses another request
 * with the same key with `idempotency_key_reused`. Other refusals: `robotics_paused`, `conflict` (a suspended
 * consumer), `busy` (too many open tasks).
 */
export const offerServingTask = repeatableWithKey(
  "robotics.offerServingTask",
  z.object({
    caller,
    consumerId: id,
    leg: z.enum(TASK_LEGS),
    manifest: z.array(manifestLineSchema).min(1).max(BOUNDS.orderLines),
    destination: destinationSchema,
    validForMs: z.int().min(BOUNDS.offerLifetimeMs.min).max(BOUNDS.offerLifetimeMs.max),
    idempotencyKey: idempotencyKeySchema.optional(),
  }),
  taskReply,
);
/** Refuses with `task_not_actionable` for an ended task. For a cancelled task it changes nothing. */
export const cancelServingTask = repeatable(
  "robotics.cancelServingTask",
  z.object({ caller, taskId: id, reason }),
  taskReply,
);
/** The organization's tasks, newest first. */
export const listServingTasks = repeatable(
  "robotics.listServingTasks",
  z.object({
    caller,
    filialId: id.optional(),
    consumerId: id.optional(),
    status: z.enum(SERVING_TASK_STATUSES).optional(),
    ...pageBefore,
  }),
  z.object({ tasks: z.array(servingTaskSchema), hasMore }),
);
export const getServingTask = repeatable("robotics.getServingTask", z.object({ caller, taskId: id }), taskReply);

/**
 * A consumer's tasks of one status, or the offered and accepted ones, oldest first; and whether robotics is paused at
 * the filial.
 */
export const listConsumerTasks = repeatable(
  "robotics.listConsumerTasks",
  z.object({ consumer, status: z.enum(SERVING_TASK_STATUSES).optional(), ...pageAfter }),
  z.object({ tasks: z.array(servingTaskSchema), hasMore, paused: z.boolean() }),
);
export const getConsumerTask = repeatable("robotics.getConsumerTask", z.object({ consumer, taskId: id }), taskReply);
/**
 * For a task that the consumer has accepted it changes nothing. Refusals: `task_expired` (its time is over),
 * `task_not_actionable` (with its status), `robotics_paused`, `permission_denied` (just suspended).
 */
export const acceptServingTask = repeatable(
  "robotics.acceptServingTask",
  z.object({ consumer, taskId: id }),
  taskReply,
);
/**
 * For a task that the consumer has completed it changes nothing. A pause does not prevent the completion. Refusals:
 * `task_not_actionable` in any other status but accepted, `permission_denied` (just suspended).
 */
export const completeServingTask = repeatable(
  "robotics.completeServingTask",
  z.object({ consumer, taskId: id }),
  taskReply,
);
