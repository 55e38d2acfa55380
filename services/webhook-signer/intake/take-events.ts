/** Events become deliveries, event and deliveries in one transaction; each event once, however often it comes. */
import type { PublishedRoboticsEvent } from "../../bus/messages/robotics-events.ts";
import type { Database } from "../../db/pool.ts";
import { envelope } from "../deliveries/envelope.ts";
import {
  insertDeliveries,
  insertEvents,
  listTargets,
  type NewDelivery,
  type TargetRow,
  takeDeliveryIds,
} from "../sql/intake.ts";

export interface EventsTaken {
  readonly events: number;
  readonly deliveries: number;
  /** Owners with something to send. */
  readonly organizationIds: readonly number[];
}

export async function takeEvents(
  database: Database,
  published: readonly PublishedRoboticsEvent[],
): Promise<EventsTaken> {
  if (published.length === 0) return { events: 0, deliveries: 0, organizationIds: [] };
  return await database.begin(async (sql) => {
    const inserted = await insertEvents(sql, published);
    const fresh = published.filter(isFirst(inserted));
    const targets = await listTargets(sql, {
      consumerIds: fresh.flatMap(({ event }) => event.consumerId ?? []),
      filialIds: fresh.flatMap(({ event }) => (event.consumerId === null ? event.filialId : [])),
    });
    const wanted = fresh.flatMap((one) => targets.filter(concernedBy(one)).map((target) => ({ one, target })));
    const consumerIds = wanted.map(({ target }) => target.consumer_id);
    const ids = wanted.length === 0 ? [] : await takeDeliveryIds(sql, { consumerIds, count: wanted.length });
    const deliveries = wanted.map(({ one, target }, index) => deliveryOf(one, target, ids[index] ?? 0));
    await insertDeliveries(sql, deliveries);
    const pending = deliveries.filter((delivery) => delivery.status === "pending");
    const organizationIds = [...new Set(pending.map((delivery) => delivery.organizationId))];
    return { events: fresh.length, deliveries: deliveries.length, organizationIds };
  });
}

/** Whether the event is new; the same one twice in a batch counts once. */
function isFirst(inserted: ReadonlySet<number>): (one: PublishedRoboticsEvent) => boolean {
  const left = new Set(inserted);
  return ({ eventId }) => left.delete(eventId);
}

function concernedBy({ event }: PublishedRoboticsEvent): (target: TargetRow) => boolean {
  const { consumerId, filialId } = event;
  return (target) => (consumerId === null ? target.filial_id === filialId : target.consumer_id === consumerId);
}

function deliveryOf({ eventId, event }: PublishedRoboticsEvent, target: TargetRow, deliveryId: number): NewDelivery {
  const { organizationId, eventType, createdAt, payload } = event;
  // What comes while an endpoint is paused waits for it; nothing is sent to one that was disabled.
  const isSent = target.endpoint_id !== null && target.status !== "disabled";
  return {
    deliveryId,
    organizationId,
    consumerId: target.consumer_id,
    endpointId: target.endpoint_id,
    eventId,
    eventType,
    body: envelope({ deliveryId, eventType, createdAt, payload }),
    status: isSent ? "pending" : "unsent",
    lapsesAt: event.eventType === "serving_task.offered" ? event.payload.expires_at : null,
  };
}
