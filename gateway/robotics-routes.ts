/** The rows that a fleet calls about its serving tasks (contract, "Webhook-related read and replay endpoints"). */
import {
  servingTaskSchema,
  servingTasksQuerySchema,
  servingTasksSchema,
  taskConditionHeaderSchema,
  taskEtagHeaderSchema,
} from "./contract/robotics.ts";
import {
  acceptServingTask,
  completeServingTask,
  getServingTask,
  listServingTasks,
} from "./handlers/robotics/serving-tasks.ts";
import { consumer, type Route, route } from "./http/route.ts";

const tasks = "/api/robotics/v1/serving-tasks/" as const;
const task = `${tasks}{task_id}` as const;
const tag = "robotics";

const unchanged = {
  description:
    "Unchanged: the `ETag` that was sent in `If-None-Match` still is the current one. No body; keep what the last 200 answer said.",
  schema: null,
  headers: taskEtagHeaderSchema,
};
const taskReply = { 200: { description: "The task after this.", schema: servingTaskSchema } };

export const roboticsRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: tasks,
    operation: "listServingTasks",
    tag,
    summary: "List the serving tasks",
    description:
      "Without `status` the current ones. This is the truth: whatever a webhook said, or failed to say, reconcile with it. Poll every second or two with the last ETag. An offer whose time is over is shown as offered for a moment, until it expires.",
    who: consumer,
    quiet: true,
    query: servingTasksQuerySchema,
    headers: taskConditionHeaderSchema,
    replies: {
      200: { description: "By id, oldest first.", schema: servingTasksSchema, headers: taskEtagHeaderSchema },
      304: unchanged,
    },
    errors: [],
    handler: listServingTasks,
  }),
  route({
    method: "GET",
    path: `${task}/`,
    operation: "getServingTask",
    tag,
    summary: "Look at a serving task",
    description: "With its manifest and destination, which no webhook carries.",
    who: consumer,
    quiet: true,
    headers: taskConditionHeaderSchema,
    replies: {
      200: { description: "The task.", schema: servingTaskSchema, headers: taskEtagHeaderSchema },
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
      "Until `expires_at`, and not while robotics is paused. Repeating it changes nothing. Of an acceptance, a cancellation and the deadline, exactly one comes first; the others are told its outcome.",
    who: consumer,
    replies: taskReply,
    errors: ["not_found", "task_expired", "task_not_actionable", "robotics_paused"],
    handler: acceptServingTask,
  }),
  route({
    method: "POST",
    path: `${task}/complete/`,
    operation: "completeServingTask",
    tag,
    summary: "Say that an accepted task is done",
    description: "Also while robotics is paused. Repeating it changes nothing.",
    who: consumer,
    replies: taskReply,
    errors: ["not_found", "task_not_actionable"],
    handler: completeServingTask,
  }),
];
