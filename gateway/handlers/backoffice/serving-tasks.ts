/** The owner's serving tasks: offered, looked at, cancelled. */
import type { z } from "zod";
import { cancelTask, getOwnTask, listOwnTasks, offerTask } from "../../../services/bus/messages/robotics.ts";
import type {
  offerServingTaskBodySchema,
  ownServingTasksQuerySchema,
  roboticsReasonBodySchema,
} from "../../contract/robotics.ts";
import { idempotencyKey, sessionCommandId } from "../../http/command-id.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownTaskWire } from "../robotics/task-wire.ts";

export const listOwnServingTasks: SessionHandler<undefined, z.infer<typeof ownServingTasksQuerySchema>> = async (
  context,
) => {
  const { caller, deps, query } = context;
  const { filial_id: filialId, consumer_id: consumerId, status, before_id: beforeId, limit } = query;
  const request = { caller, filialId, consumerId, status, beforeId, limit };
  const { tasks, hasMore } = await deps.bus.call(listOwnTasks, request);
  return ok({ serving_tasks: tasks.map(ownTaskWire), has_more: hasMore });
};

/** The key is the person's own, so that two people who use the same one do not meet. */
export const offerServingTask: SessionHandler<z.infer<typeof offerServingTaskBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { consumer_id: consumerId, leg, manifest, destination, valid_for_seconds: validForSeconds } = body;
  const { task } = await deps.bus.call(offerTask, {
    caller,
    consumerId,
    leg,
    manifest,
    destination,
    validForMs: validForSeconds * 1_000,
    idempotencyKey: idempotencyKey(context) && sessionCommandId(context, "serving_task_offer", caller.organizationId),
  });
  return created(ownTaskWire(task));
};

export const getOwnServingTask: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { task } = await deps.bus.call(getOwnTask, { caller, taskId: context.id("task_id") });
  return ok(ownTaskWire(task));
};

export const cancelServingTask: SessionHandler<z.infer<typeof roboticsReasonBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { task } = await deps.bus.call(cancelTask, { caller, taskId: context.id("task_id"), reason: body.reason });
  return ok(ownTaskWire(task));
};
