/** What a fleet does: it looks at its tasks, accepts what it is offered and says when it is done. */
import type { z } from "zod";
import { acceptTask, completeTask, getTask, listTasks } from "../../../services/bus/messages/robotics.ts";
import { RefusedError } from "../../../services/bus/refusals.ts";
import type { servingTasksQuerySchema } from "../../contract/robotics.ts";
import { type ConsumerHandler, ok, Refusal } from "../../http/handler-context.ts";
import { conditional } from "./conditional.ts";
import { taskWire } from "./task-wire.ts";

export const listServingTasks: ConsumerHandler<z.infer<typeof servingTasksQuerySchema>> = async (context) => {
  const { consumer, deps, query } = context;
  const { since_id: sinceId, limit, status } = query;
  const { tasks, hasMore, paused } = await deps.bus.call(listTasks, { consumer, sinceId, limit, status });
  return conditional(context, { serving_tasks: tasks.map(taskWire), has_more: hasMore, paused });
};

/** Another consumer's task is `not_found`. */
export const getServingTask: ConsumerHandler = async (context) => {
  const { consumer, deps } = context;
  const { task } = await deps.bus.call(getTask, { consumer, taskId: context.id("task_id") });
  return conditional(context, taskWire(task));
};

const move =
  (operation: typeof acceptTask | typeof completeTask): ConsumerHandler =>
  async (context) => {
    const { consumer, deps } = context;
    try {
      const { task } = await deps.bus.call(operation, { consumer, taskId: context.id("task_id") });
      return ok(taskWire(task));
    } catch (error) {
      // The owner has suspended it since its credential was looked up, which is what any further request is told.
      const isSuspended = error instanceof RefusedError && error.refusal.code === "permission_denied";
      throw isSuspended ? new Refusal("consumer_suspended") : error;
    }
  };
export const acceptServingTask = move(acceptTask);
export const completeServingTask = move(completeTask);
