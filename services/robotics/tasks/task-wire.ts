import type { ServingTask } from "../../bus/messages/robotics.ts";
import type { TaskRow } from "../sql/tasks.ts";

export function taskOnWire(row: TaskRow): ServingTask {
  return {
    taskId: row.task_id,
    displayNumber: row.display_number,
    filialId: row.filial_id,
    consumerId: row.consumer_id,
    leg: row.leg,
    status: row.status,
    manifest: row.manifest,
    destination: row.destination,
    offeredAtMs: row.offered_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
    acceptedAtMs: row.accepted_at?.getTime() ?? null,
    endedAtMs: row.ended_at?.getTime() ?? null,
    cancelReason: row.cancel_reason,
  };
}
