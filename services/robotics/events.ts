/**
 * Events of robotics: the events that consumers receive by webhook, and the events that the owner reads in the audit log.
 * A webhook payload has only the fields of the contract, so it has no manifest and no destination of a task.
 */
import type { NatsConnection } from "nats";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as messages from "../bus/messages/events.ts";
import { flushOutbox } from "../bus/messages/outbox.ts";
import type { RoboticsEvent } from "../bus/messages/robotics-events.ts";
import { call, type Handler } from "../bus/operation.ts";
import { Failures } from "../bus/outage.ts";
import { eventsOfPage } from "../bus/page.ts";
import { filialKey, type OutboxRow } from "../db/outbox.ts";
import * as auditLog from "../db/robotics-audit-log.ts";
import type { Log } from "../runtime/log.ts";
import type { RoboticsDeps } from "./deps.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import type { TaskRow } from "./sql/serving-tasks.ts";

const outboxRow = (event: RoboticsEvent): OutboxRow => ({
  key: filialKey(event.filialId),
  kind: "robotics_event",
  event,
});

/** An event for the consumer of the task. */
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
  if (eventType !== "serving_task.offered") return outboxRow({ ...facts, eventType, payload });
  return outboxRow({ ...facts, eventType, payload: { ...payload, expires_at: task.expires_at.toISOString() } });
}

/** An event for every consumer of the filial. */
export function filialEvent(facts: {
  readonly organizationId: number;
  readonly filialId: number;
  readonly eventType: "robotics.paused" | "robotics.resumed";
  readonly at: Date;
}): OutboxRow {
  const { organizationId, filialId, eventType, at } = facts;
  const payload = { filial_id: filialId };
  return outboxRow({ organizationId, filialId, eventType, consumerId: null, createdAt: at.toISOString(), payload });
}

/** Asks the relay to deliver a filial's events now. */
type Announce = (filialId: number) => void;

/** The returned function does not wait for the relay. A relay that misses the call delivers the rows at its next poll. */
export function announcer(nc: NatsConnection, log: Pick<Log, "warn">): Announce {
  const failures = new Failures((...line) => log.warn(...line), "the relay did not deliver at once");
  return (filialId) => {
    call(nc, flushOutbox, { key: filialKey(filialId) }, ROBOTICS_LIMITS.flushTimeoutMs).catch((error: unknown) => {
      failures.failed(error, { filialId });
    });
  };
}

/** The audit log, newest first. Refuses with `permission_denied`. */
export const listRoboticsEvents: Handler<Pick<RoboticsDeps, "database">, typeof messages.listRoboticsEvents> = async (
  { database },
  { caller, search, beforeId, limit },
) => {
  const { organizationId } = requirePermission(caller, "organization.manage");
  const found = await auditLog.listRoboticsEvents(database, { organizationId, search, beforeId, limit });
  return eventsOfPage(found.entries, limit, found.searchedThroughId);
};
