/** The rows of the owner's API about robotics: the fleets that are let in, their tasks, the pause of a filial, the trail. */

import {
  changeRoboticsConsumerBodySchema,
  createRoboticsConsumerBodySchema,
  filialRoboticsSchema,
  newRoboticsConsumerSchema,
  offerServingTaskBodySchema,
  ownServingTaskSchema,
  ownServingTasksQuerySchema,
  ownServingTasksSchema,
  roboticsConsumerSchema,
  roboticsConsumersQuerySchema,
  roboticsConsumersSchema,
  roboticsEventsQuerySchema,
  roboticsEventsSchema,
  roboticsReasonBodySchema,
} from "./contract/robotics.ts";
import {
  getOwnFilialRobotics,
  listOwnRoboticsEvents,
  pauseOwnFilialRobotics,
  resumeOwnFilialRobotics,
} from "./handlers/backoffice/filial-robotics.ts";
import {
  changeOwnConsumer,
  createOwnConsumer,
  listOwnConsumers,
  resetOwnConsumerCredential,
} from "./handlers/backoffice/robotics-consumers.ts";
import {
  cancelServingTask,
  getOwnServingTask,
  listOwnServingTasks,
  offerServingTask,
} from "./handlers/backoffice/serving-tasks.ts";
import { idempotencyHeaderSchema } from "./http/command-id.ts";
import { type Route, route, session } from "./http/route.ts";
import { LIMITS } from "./limits.ts";

const root = "/api/backoffice/v1";
const consumers = `${root}/robotics-consumers/` as const;
const filial = `${root}/filials/{filial_id}/robotics` as const;
const tasks = `${root}/serving-tasks/` as const;
const who = session("organization.manage");
const tag = "backoffice";

const filialReply = { 200: { description: "Robotics at the filial after this.", schema: filialRoboticsSchema } };
const taskReply = (description: string) => ({ 200: { description, schema: ownServingTaskSchema } });

export const backofficeRoboticsRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: consumers,
    operation: "listRoboticsConsumers",
    tag,
    summary: "List the robotics consumers",
    description: "A consumer is a fleet at one filial.",
    who,
    query: roboticsConsumersQuerySchema,
    replies: { 200: { description: "By id.", schema: roboticsConsumersSchema } },
    errors: [],
    handler: listOwnConsumers,
  }),
  route({
    method: "POST",
    path: consumers,
    operation: "createRoboticsConsumer",
    tag,
    summary: "Let a robotics consumer in",
    description: "Its credential is shown this once; only a hash of it is stored.",
    who,
    body: createRoboticsConsumerBodySchema,
    replies: { 201: { description: "The consumer and its credential.", schema: newRoboticsConsumerSchema } },
    errors: ["not_found", "conflict"],
    handler: createOwnConsumer,
  }),
  route({
    method: "PATCH",
    path: `${consumers}{consumer_id}/`,
    operation: "changeRoboticsConsumer",
    tag,
    summary: "Rename, suspend or readmit a robotics consumer",
    description:
      "From the answer to this on a suspended one sees nothing, and within a second nothing more is begun to be sent to it: deliveries wait until it is readmitted, for as long as deliveries are kept, and offers lapse. Readmitted, it also finds them with `since_id`. What it was offered or has accepted stays as it is, for the owner to cancel.",
    who,
    body: changeRoboticsConsumerBodySchema,
    replies: { 200: { description: "The consumer after this.", schema: roboticsConsumerSchema } },
    errors: ["not_found"],
    handler: changeOwnConsumer,
  }),
  route({
    method: "POST",
    path: `${consumers}{consumer_id}/reset-credential/`,
    operation: "resetRoboticsCredential",
    tag,
    summary: "Give a robotics consumer a new credential",
    description: "The old one ends with the answer to this.",
    who,
    replies: { 200: { description: "The consumer and its new credential.", schema: newRoboticsConsumerSchema } },
    errors: ["not_found"],
    handler: resetOwnConsumerCredential,
  }),
  route({
    method: "GET",
    path: `${filial}/`,
    operation: "getFilialRobotics",
    tag,
    summary: "Look whether robotics is paused at a filial",
    description: "With who changed it last, when and why; a filial that never was paused is not.",
    who,
    replies: { 200: { description: "Robotics at the filial.", schema: filialRoboticsSchema } },
    errors: ["not_found"],
    handler: getOwnFilialRobotics,
  }),
  route({
    method: "POST",
    path: `${filial}/pause/`,
    operation: "pauseFilialRobotics",
    tag,
    summary: "Pause robotics at a filial",
    description:
      "From the answer to this on no task is offered or accepted there. What is under way can be completed or cancelled; offers expire as before. Pausing what is paused changes nothing.",
    who,
    body: roboticsReasonBodySchema,
    replies: filialReply,
    errors: ["not_found"],
    handler: pauseOwnFilialRobotics,
  }),
  route({
    method: "POST",
    path: `${filial}/resume/`,
    operation: "resumeFilialRobotics",
    tag,
    summary: "Resume robotics at a filial",
    description: "Resuming what is not paused changes nothing.",
    who,
    body: roboticsReasonBodySchema,
    replies: filialReply,
    errors: ["not_found"],
    handler: resumeOwnFilialRobotics,
  }),
  route({
    method: "GET",
    path: tasks,
    operation: "listServingTasks",
    tag,
    summary: "List the serving tasks",
    description: "Without `before_id` the newest ones. Those that ended long ago are gone; the trail still has them.",
    who,
    query: ownServingTasksQuerySchema,
    replies: { 200: { description: "Newest first.", schema: ownServingTasksSchema } },
    errors: [],
    handler: listOwnServingTasks,
  }),
  route({
    method: "POST",
    path: tasks,
    operation: "offerServingTask",
    tag,
    summary: "Offer a task to a fleet",
    description:
      "It can be accepted until its time is over. The body may have 256 KiB. Repeated with the same `Idempotency-Key`, it returns the task that the first request made, as it is now.",
    who,
    headers: idempotencyHeaderSchema,
    body: offerServingTaskBodySchema,
    bodyBytes: LIMITS.offerBodyBytes,
    replies: { 201: { description: "The task.", schema: ownServingTaskSchema } },
    errors: ["not_found", "robotics_paused", "conflict", "idempotency_key_reused"],
    handler: offerServingTask,
  }),
  route({
    method: "GET",
    path: `${tasks}{task_id}/`,
    operation: "getServingTask",
    tag,
    summary: "Look at a serving task",
    description: "With its fleet and, where it was cancelled, why.",
    who,
    replies: taskReply("The task."),
    errors: ["not_found"],
    handler: getOwnServingTask,
  }),
  route({
    method: "POST",
    path: `${tasks}{task_id}/cancel/`,
    operation: "cancelServingTask",
    tag,
    summary: "Cancel a serving task",
    description: "Offered or accepted, also while robotics is paused. Cancelling a cancelled one changes nothing.",
    who,
    body: roboticsReasonBodySchema,
    replies: taskReply("The task after this."),
    errors: ["not_found", "task_not_actionable"],
    handler: cancelServingTask,
  }),
  route({
    method: "GET",
    path: `${root}/robotics-events/`,
    operation: "listRoboticsEvents",
    tag,
    summary: "List what was done about robotics",
    description:
      "The trail of consumers, serving tasks, pauses and webhook endpoints: who did what, when and why. Without `before_id` the newest ones.",
    who,
    query: roboticsEventsQuerySchema,
    replies: { 200: { description: "Newest first.", schema: roboticsEventsSchema } },
    errors: [],
    handler: listOwnRoboticsEvents,
  }),
];
