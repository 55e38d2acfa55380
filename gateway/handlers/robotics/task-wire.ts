/** A serving task on the wire, as its fleet and as its owner see it. */
import type { z } from "zod";
import type { ServingTask } from "../../../services/bus/messages/robotics.ts";
import type { ownServingTaskSchema, servingTaskSchema } from "../../contract/robotics.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";

const orNull = (ms: number | null): string | null => (ms === null ? null : toTimestamp(ms));

export function taskWire(task: ServingTask): z.infer<typeof servingTaskSchema> {
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
    accepted_at: orNull(task.acceptedAtMs),
    ended_at: orNull(task.endedAtMs),
  };
}

export function ownTaskWire(task: ServingTask): z.infer<typeof ownServingTaskSchema> {
  const { filialId, consumerId, cancelReason } = task;
  return { ...taskWire(task), filial_id: filialId, consumer_id: consumerId, cancel_reason: cancelReason };
}
