/**
 * The states of a serving task (contract, "Events"; design §9). The service offers a task to one consumer's fleet. The
 * fleet accepts it before the offer's deadline, or the offer expires. The owner may cancel a task until it has ended.
 *
 *   ┌─────────┐ ─ACCEPT─► ┌──────────┐ ─COMPLETE─► (completed)
 *   │ offered │           │ accepted │
 *   └─────────┘ ─EXPIRE─► (expired)
 *        └──────CANCEL────┴─► (cancelled)
 */
import { setup, transition } from "xstate";

/** Where a task leads from and to (design §9). */
export const TASK_LEGS = ["kitchen_to_table", "kitchen_to_pickup", "table_to_kitchen", "courier"] as const;
export type TaskLeg = (typeof TASK_LEGS)[number];

export const SERVING_TASK_STATUSES = ["offered", "accepted", "completed", "cancelled", "expired"] as const;
export type ServingTaskStatus = (typeof SERVING_TASK_STATUSES)[number];

export const SERVING_TASK_EVENTS = ["ACCEPT", "COMPLETE", "CANCEL", "EXPIRE"] as const;
export interface ServingTaskEvent {
  readonly type: (typeof SERVING_TASK_EVENTS)[number];
}

export const servingTaskMachine = setup({ types: { events: {} as ServingTaskEvent } }).createMachine({
  id: "servingTask",
  initial: "offered",
  states: {
    offered: { on: { ACCEPT: "accepted", CANCEL: "cancelled", EXPIRE: "expired" } },
    accepted: { on: { COMPLETE: "completed", CANCEL: "cancelled" } },
    completed: { type: "final" },
    cancelled: { type: "final" },
    expired: { type: "final" },
  },
});

/** The status after an event; undefined when the event does nothing to a task in this status. */
export function nextTaskStatus(
  status: ServingTaskStatus,
  type: ServingTaskEvent["type"],
): ServingTaskStatus | undefined {
  const state = servingTaskMachine.resolveState({ value: status });
  if (!state.can({ type })) return undefined;
  return transition(servingTaskMachine, state, { type })[0].value;
}
