/** A fleet's serving tasks: it reads, accepts and completes them (contract, "Webhook-related read and replay endpoints"). */
import { z } from "zod";
import { SERVING_TASK_STATUSES, TASK_LEGS } from "../../../machines/serving-task.ts";
import * as messages from "../../../services/bus/messages/serving-tasks.ts";
import { RefusedError } from "../../../services/bus/refusals.ts";
import { conditionalHeaderSchema } from "../../http/conditional.ts";
import { ApiError, type ConsumerContext, type ConsumerHandler, ok, type Reply } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { consumer, route } from "../../http/route.ts";
import { idSchema, optionalTimestamp, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { etagOf, matchesEtag } from "../../read-model/etag.ts";

export const servingTaskStatusSchema = z.enum(SERVING_TASK_STATUSES).meta({ id: "ServingTaskStatus" });
export const servingTaskLegSchema = z
  .enum(TASK_LEGS)
  .meta({ id: "ServingTaskLeg", description: "Where from and where to." });

/** The fields that a fleet and the owner see. */
export const servingTaskFields = {
  task_id: idSchema,
  display_number: idSchema.meta({ description: "For people; without gaps at a filial." }),
  leg: servingTaskLegSchema,
  status: servingTaskStatusSchema,
  manifest: z.array(z.object({ name: z.string(), quantity: z.int().min(1) })).meta({ description: "What is carried." }),
  destination: z
    .object({ name: z.string(), details: z.string().nullable() })
    .meta({ description: "A table, a counter, or a guest's address on courier legs." }),
  offered_at: timestampSchema,
  expires_at: timestampSchema.meta({ description: "Until when the offer can be accepted." }),
  accepted_at: timestampSchema.nullable(),
  ended_at: timestampSchema.nullable(),
};
const example = {
  task_id: 42,
  display_number: 7,
  leg: "kitchen_to_table",
  status: "offered",
  manifest: [{ name: "Soup of the day", quantity: 2 }],
  destination: { name: "Table 12", details: null },
  offered_at: "2026-11-20T12:00:00.000Z",
  expires_at: "2026-11-20T12:02:00.000Z",
  accepted_at: null,
  ended_at: null,
} as const;
const servingTaskSchema = z.object(servingTaskFields).meta({ id: "ServingTask", examples: [example] });
const servingTasksSchema = z
  .object({
    serving_tasks: z.array(servingTaskSchema),
    has_more: hasMoreAfter,
    paused: z
      .boolean()
      .meta({ description: "Whether robotics is paused at the filial: what is offered cannot be accepted now." }),
  })
  .meta({ id: "ServingTasks", examples: [{ serving_tasks: [example], has_more: false, paused: false }] });
const servingTasksQuerySchema = z.strictObject({
  ...pageAfterQuery,
  status: servingTaskStatusSchema.optional().meta({
    description: "Only serving tasks of this status. Left out: the current ones, which are offered or accepted.",
  }),
});
/** The entity tag is weak and covers the whole answer, as for polls. */
const etagHeaderSchema = z.object({ ETag: z.string().meta({ description: "Weak; of the whole answer." }) });

export function servingTaskJson(task: messages.ServingTask): z.infer<typeof servingTaskSchema> {
  const { destination } = task;
  return {
    task_id: task.taskId,
    display_number: task.displayNumber,
    leg: task.leg,
    status: task.status,
    manifest: task.manifest,
    destination: { name: destination.name, details: destination.details ?? null },
    offered_at: toTimestamp(task.offeredAtMs),
    expires_at: toTimestamp(task.expiresAtMs),
    accepted_at: optionalTimestamp(task.acceptedAtMs),
    ended_at: optionalTimestamp(task.endedAtMs),
  };
}

const listServingTasks: ConsumerHandler<z.infer<typeof servingTasksQuerySchema>> = async (context) => {
  const { consumer: caller, deps, query } = context;
  const { since_id: sinceId, limit, status } = query;
  const request = { consumer: caller, sinceId, limit, status };
  const { tasks, hasMore, paused } = await deps.bus.call(messages.listConsumerTasks, request);
  return conditional(context, { serving_tasks: tasks.map(servingTaskJson), has_more: hasMore, paused });
};

/** Error: `not_found` for another consumer's task. */
const getServingTask: ConsumerHandler = async (context) => {
  const request = { consumer: context.consumer, taskId: context.id("task_id") };
  const { task } = await context.deps.bus.call(messages.getConsumerTask, request);
  return conditional(context, servingTaskJson(task));
};

/** The body with its entity tag, or 304 for a client that already has it. */
function conditional(context: ConsumerContext<unknown>, body: unknown): Reply {
  const ready = JSON.stringify(body);
  const headers = { ETag: etagOf(ready) };
  const sent = context.header("if-none-match");
  return sent !== "" && matchesEtag(sent, headers.ETag) ? { status: 304, headers } : { status: 200, ready, headers };
}

const move =
  (operation: typeof messages.acceptServingTask | typeof messages.completeServingTask): ConsumerHandler =>
  async (context) => {
    const { consumer: caller, deps } = context;
    try {
      const { task } = await deps.bus.call(operation, { consumer: caller, taskId: context.id("task_id") });
      return ok(servingTaskJson(task));
    } catch (error) {
      // The owner has suspended the consumer since the check of its credential. Every later request gets the same answer.
      const isSuspended = error instanceof RefusedError && error.refusal.code === "permission_denied";
      throw isSuspended ? new ApiError("consumer_suspended") : error;
    }
  };

const tasks = "/api/robotics/v1/serving-tasks/" as const;
const task = `${tasks}{task_id}` as const;
const tag = "robotics";
const unchanged = {
  description: "Unchanged: the `ETag` in `If-None-Match` is still current. No body; keep the last 200 answer.",
  schema: null,
  headers: etagHeaderSchema,
};
const taskReply = { 200: { description: "The task after the change.", schema: servingTaskSchema } };

export const consumerTaskRoutes = [
  route({
    method: "GET",
    path: tasks,
    operation: "listServingTasks",
    tag,
    summary: "List the serving tasks",
    description:
      "Without `status`, the current ones. This list is authoritative: reconcile with it, because a webhook can be late or missing. Poll every second or two with the last ETag. An offer whose time is over is shown as offered for a moment, until it expires.",
    who: consumer,
    quiet: true,
    query: servingTasksQuerySchema,
    headers: conditionalHeaderSchema,
    replies: {
      200: { description: "By id, oldest first.", schema: servingTasksSchema, headers: etagHeaderSchema },
      304: unchanged,
    },
    handler: listServingTasks,
  }),
  route({
    method: "GET",
    path: `${task}/`,
    operation: "getServingTask",
    tag,
    summary: "Read a serving task",
    description: "With its manifest and destination, which no webhook carries.",
    who: consumer,
    quiet: true,
    headers: conditionalHeaderSchema,
    replies: {
      200: { description: "The task.", schema: servingTaskSchema, headers: etagHeaderSchema },
      304: unchanged,
    },
    errors: ["not_found"],
    handler: getServingTask,
  }),
  route({
    method: "POST",
    path: `${task}/accept/`,
    operation: "acceptServingTask",
    tag,
    summary: "Accept an offered task",
    description:
      "Possible until `expires_at`, and not while robotics is paused. A repetition changes nothing. Of an acceptance, a cancellation and the deadline, only the first takes effect; the others receive its outcome.",
    who: consumer,
    replies: taskReply,
    errors: ["not_found", "task_expired", "task_not_actionable", "robotics_paused"],
    handler: move(messages.acceptServingTask),
  }),
  route({
    method: "POST",
    path: `${task}/complete/`,
    operation: "completeServingTask",
    tag,
    summary: "Report that an accepted task is done",
    description: "Also while robotics is paused. Repeating it changes nothing.",
    who: consumer,
    replies: taskReply,
    errors: ["not_found", "task_not_actionable"],
    handler: move(messages.completeServingTask),
  }),
];
