/**
 * What consumers are told, as the outbox row that tells them. A payload has the fields of the contract and no others:
 * what a task carries and where to stays here.
 */
import type { RoboticsEvent } from "../bus/messages/robotics-events.ts";
import { filialKey, type OutboxRow } from "../db/outbox.ts";
import type { TaskRow } from "./sql/tasks.ts";

const row = (event: RoboticsEvent): OutboxRow => ({
  key: filialKey(event.filialId),
  kind: "robotics_event",
  event,
});

export function taskEvent(
  task: TaskRow,
  eventType: "serving_task.offered" | "serving_task.cancelled" | "serving_task.expired",
): OutboxRow {
  const facts = {
    organizationId: task.organization_id,
    filialId: task.filial_id,
    consumerId: task.consumer_id,
    createdAt: (task.ended_at ?? task.offered_at).toISOString(),
  };
  const payload = {
    task_id: task.task_id,
    display_number: task.display_number,
    leg: task.leg,
    status: task.status,
  };
  if (eventType !== "serving_task.offered") return row({ ...facts, eventType, payload });
  return row({ ...facts, eventType, payload: { ...payload, expires_at: task.expires_at.toISOString() } });
}

/** For every consumer of the filial. */
export function filialEvent(facts: {
  readonly organizationId: number;
  readonly filialId: number;
  readonly eventType: "robotics.paused" | "robotics.resumed";
  readonly at: Date;
}): OutboxRow {
  const { organizationId, filialId, eventType, at } = facts;
  const createdAt = at.toISOString();
  return row({ organizationId, filialId, eventType, consumerId: null, createdAt, payload: { filial_id: filialId } });
}
