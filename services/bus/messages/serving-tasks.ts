/**
 * Serving tasks for robots. The owner offers and cancels, and needs `organization.manage`; a consumer reads, accepts and
 * completes. Lists come in pages; a foreign id is `not_found`.
 */
import { z } from "zod";
import { SERVING_TASK_STATUSES, TASK_LEGS } from "../../../machines/serving-task.ts";
import { BOUNDS } from "../bounds.ts";
import { repeatable, repeatableWithKey } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { callerSchema } from "./caller.ts";
import { consumerCallerSchema } from "./consumers.ts";
import { nameSchema as name } from "./name.ts";
import { detailsSchema, reasonSchema as reason } from "./sentence.ts";

const id = z.int().positive();
const caller = callerSchema;
const consumer = consumerCallerSchema;
const hasMore = z.boolean();

/** One thing to carry: what it is, how many. */
const manifestLineSchema = z.object({ name, quantity: z.int().min(1).max(BOUNDS.lineQuantity) });
/** Where to: a table, a counter, a guest's address on courier legs. It never leaves by webhook. */
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
  /** Why the owner cancelled it. */
  cancelReason: z.string().nullable(),
});
export type ServingTask = z.infer<typeof servingTaskSchema>;
const taskReply = z.object({ task: servingTaskSchema });

/**
 * Offers a task to a consumer. With a key, a repetition returns the task that the first one made; another request under
 * it is `idempotency_key_reused`. Refusals: `robotics_paused`, `conflict` (a suspended consumer), `busy` (too many open).
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
    idempotencyKey: z.string().max(BOUNDS.idempotencyKeyCharacters).optional(),
  }),
  taskReply,
);
/** Refused with `task_not_actionable` once it has ended; cancelling a cancelled one again changes nothing. */
export const cancelServingTask = repeatable(
  "robotics.cancelServingTask",
  z.object({ caller, taskId: id, reason }),
  taskReply,
);
/** The organization's, newest first. */
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

/** A consumer's tasks of one status, or the current ones (offered and accepted), oldest first; and whether the filial is paused. */
export const listConsumerTasks = repeatable(
  "robotics.listConsumerTasks",
  z.object({ consumer, status: z.enum(SERVING_TASK_STATUSES).optional(), ...pageAfter }),
  z.object({ tasks: z.array(servingTaskSchema), hasMore, paused: z.boolean() }),
);
export const getConsumerTask = repeatable("robotics.getConsumerTask", z.object({ consumer, taskId: id }), taskReply);
/**
 * Accepting what one has accepted changes nothing. Refusals: `task_expired` (its time is over), `task_not_actionable`
 * (with its status), `robotics_paused`, `permission_denied` (just suspended).
 */
export const acceptServingTask = repeatable(
  "robotics.acceptServingTask",
  z.object({ consumer, taskId: id }),
  taskReply,
);
/**
 * Completing what one has completed changes nothing, and a pause does not hold up what is under way. Refusals:
 * `task_not_actionable` in any other status but accepted, `permission_denied` (just suspended).
 */
export const completeServingTask = repeatable(
  "robotics.completeServingTask",
  z.object({ consumer, taskId: id }),
  taskReply,
);
