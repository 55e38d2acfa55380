/** The owner's serving tasks: offered to a fleet, read, cancelled. */
import { z } from "zod";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { detailsSchema as detailsOnTheBus } from "../../../services/bus/messages/sentence.ts";
import * as messages from "../../../services/bus/messages/serving-tasks.ts";
import { idempotencyHeaderSchema, idempotencyKey, sessionCommandId } from "../../http/command-id.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery, queryId } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, nameSchema } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";
import {
  servingTaskFields,
  servingTaskJson,
  servingTaskLegSchema,
  servingTaskStatusSchema,
} from "../robotics/serving-tasks.ts";
import { roboticsReasonBodySchema } from "./filial-robotics.ts";

const ownServingTaskSchema = z
  .object({
    ...servingTaskFields,
    filial_id: idSchema,
    consumer_id: idSchema,
    cancel_reason: z.string().nullable(),
  })
  .meta({ id: "OwnServingTask" });
const ownServingTasksSchema = z.object({
  serving_tasks: z.array(ownServingTaskSchema),
  has_more: hasMoreBefore,
});
const ownServingTasksQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  filial_id: queryId().optional().meta({
    description: "Only serving tasks of this filial, by its id in the list of filials; of all filials when left out.",
  }),
  consumer_id: queryId().optional().meta({
    description:
      "Only serving tasks of this robotics consumer, by its id in the list of robotics consumers; of all when left out.",
  }),
  status: servingTaskStatusSchema
    .optional()
    .meta({ description: "Only serving tasks of this status; all when left out." }),
});

const manifestSchema = z
  .array(z.strictObject({ name: nameSchema, quantity: z.int().min(1).max(BOUNDS.lineQuantity) }))
  .min(1)
  .max(BOUNDS.orderLines)
  .meta({ description: "The things that the robot carries." });
const detailsSchema = detailsOnTheBus.meta({
  description:
    "A further description of the place, up to 500 characters in one or more lines. The service refuses control characters other than line ends, and marks that override the direction of text.",
});
const { min: leastMs, max: mostMs } = BOUNDS.offerLifetimeMs;
export const offerServingTaskBodySchema = z
  .strictObject({
    consumer_id: idSchema,
    leg: servingTaskLegSchema,
    manifest: manifestSchema,
    destination: z.strictObject({
      name: nameSchema,
      details: detailsSchema.optional(),
    }),
    valid_for_seconds: z
      .int()
      .min(leastMs / 1_000)
      .max(mostMs / 1_000)
      .default(LIMITS.offerUnlessAskedSeconds)
      .meta({ description: "How long the offer can be accepted; two minutes when left out." }),
  })
  .meta({
    id: "OfferServingTask",
    examples: [
      {
        consumer_id: 42,
        leg: "kitchen_to_table",
        manifest: [{ name: "Soup of the day", quantity: 2 }],
        destination: { name: "Table 12" },
        valid_for_seconds: 120,
      },
    ],
  });

function ownServingTaskJson(task: messages.ServingTask): z.infer<typeof ownServingTaskSchema> {
  const { filialId, consumerId, cancelReason } = task;
  return { ...servingTaskJson(task), filial_id: filialId, consumer_id: consumerId, cancel_reason: cancelReason };
}

const listServingTasks: SessionHandler<undefined, z.infer<typeof ownServingTasksQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { filial_id: filialId, consumer_id: consumerId, status, before_id: beforeId, limit } = query;
  const request = { caller, filialId, consumerId, status, beforeId, limit };
  const { tasks, hasMore } = await deps.bus.call(messages.listServingTasks, request);
  return ok({ serving_tasks: tasks.map(ownServingTaskJson), has_more: hasMore });
};

/** The idempotency key is valid for this person only, so two people may use the same key. */
const offerServingTask: SessionHandler<z.infer<typeof offerServingTaskBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { consumer_id: consumerId, leg, manifest, destination, valid_for_seconds: validForSeconds } = body;
  const { task } = await deps.bus.call(messages.offerServingTask, {
    caller,
    consumerId,
    leg,
    manifest,
    destination,
    validForMs: validForSeconds * 1_000,
    idempotencyKey: idempotencyKey(context) && sessionCommandId(context, "serving_task_offer", caller.organizationId),
  });
  return created(ownServingTaskJson(task));
};

const getServingTask: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { task } = await deps.bus.call(messages.getServingTask, { caller, taskId: context.id("task_id") });
  return ok(ownServingTaskJson(task));
};

const cancelServingTask: SessionHandler<z.infer<typeof roboticsReasonBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, taskId: context.id("task_id"), reason: body.reason };
  const { task } = await deps.bus.call(messages.cancelServingTask, request);
  return ok(ownServingTaskJson(task));
};

const tasks = "/api/backoffice/v1/serving-tasks/" as const;
const taskReply = (description: string) => ({ 200: { description, schema: ownServingTaskSchema } });

export const servingTaskRoutes = [
  backofficeRoute({
    method: "GET",
    path: tasks,
    operation: "listServingTasks",
    summary: "List the serving tasks",
    description:
      "Without `before_id`, the newest tasks. The service deletes a task some time after its end; the audit log still has it.",
    query: ownServingTasksQuerySchema,
    replies: { 200: { description: "Newest first.", schema: ownServingTasksSchema } },
    handler: listServingTasks,
  }),
  backofficeRoute({
    method: "POST",
    path: tasks,
    operation: "offerServingTask",
    summary: "Offer a task to a fleet",
    description:
      "The fleet can accept the task until the offer expires. The body may have up to 256 KiB. A repetition with the same `Idempotency-Key` returns the task of the first request, in its current state.",
    headers: idempotencyHeaderSchema,
    body: offerServingTaskBodySchema,
    bodyBytes: LIMITS.offerBodyBytes,
    replies: { 201: { description: "The task.", schema: ownServingTaskSchema } },
    errors: ["not_found", "robotics_paused", "conflict", "idempotency_key_reused"],
    handler: offerServingTask,
  }),
  backofficeRoute({
    method: "GET",
    path: `${tasks}{task_id}/`,
    operation: "getServingTask",
    summary: "Read a serving task",
    description: "The task with its consumer and, if it was cancelled, the reason.",
    replies: taskReply("The task."),
    errors: ["not_found"],
    handler: getServingTask,
  }),
  backofficeRoute({
    method: "POST",
    path: `${tasks}{task_id}/cancel/`,
    operation: "cancelServingTask",
    summary: "Cancel a serving task",
    description:
      "An offered or accepted task can be cancelled, also while robotics is paused. A second cancellation changes nothing.",
    body: roboticsReasonBodySchema,
    replies: taskReply("The task after the change."),
    errors: ["not_found", "task_not_actionable"],
    handler: cancelServingTask,
  }),
];
