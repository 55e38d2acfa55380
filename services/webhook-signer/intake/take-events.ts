/** Events become deliveries, event and deliveries in one transaction; each event once, however often it comes. */
import type { PublishedRoboticsEvent } from "../../bus/messages/robotics-events.ts";
import type { Database, Transaction } from "../../db/pool.ts";
import { envelope } from "../deliveries/envelope.ts";
import {
  holdEndpoints,
  insertDeliveries,
  insertEvents,
  listConsumers,
  type NewDelivery,
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
    const targets = await targetsOf(sql, fresh);
    const wanted = fresh.flatMap((one) => targets.filter(concernedBy(one)).map((target) => ({ one, target })));
    const consumerIds = wanted.map(({ target }) => target.consumerId);
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

interface EventTarget {
  readonly consumerId: number;
  readonly filialId: number;
  /** Null for a consumer without an endpoint. */
  readonly endpointId: number | null;
  readonly isDisabled: boolean;
}

async function targetsOf(sql: Transaction, fresh: readonly PublishedRoboticsEvent[]): Promise<readonly EventTarget[]> {
  const consumers = await listConsumers(sql, {
    consumerIds: fresh.flatMap(({ event }) => event.consumerId ?? []),
    filialIds: fresh.flatMap(({ event }) => (event.consumerId === null ? event.filialId : [])),
  });
  const endpoints = await holdEndpoints(
    sql,
    consumers.map((consumer) => consumer.consumer_id),
  );
  return consumers.flatMap<EventTarget>(({ consumer_id: consumerId, filial_id: filialId }) => {
    const own = endpoints.filter((endpoint) => endpoint.consumer_id === consumerId);
    if (own.length === 0) return [{ consumerId, filialId, endpointId: null, isDisabled: false }];
    return own.map(({ endpoint_id: endpointId, status }) => {
      return { consumerId, filialId, endpointId, isDisabled: status === "disabled" };
    });
  });
}

function concernedBy({ event }: PublishedRoboticsEvent): (target: EventTarget) => boolean {
  const { consumerId, filialId } = event;
  return (target) => (consumerId === null ? target.filialId === filialId : target.consumerId === consumerId);
}

function deliveryOf({ eventId, event }: PublishedRoboticsEvent, target: EventTarget, deliveryId: number): NewDelivery {
  const { organizationId, eventType, createdAt, payload } = event;
  // What comes while an endpoint is paused waits for it; nothing is sent to one that was disabled.
  const isSent = target.endpointId !== null && !target.isDisabled;
  return {
    deliveryId,
    organizationId,
    consumerId: target.consumerId,
    endpointId: target.endpointId,
    eventId,
    eventType,
    body: envelope({ deliveryId, eventType, createdAt, payload }),
    status: isSent ? "pending" : "unsent",
    lapsesAt: event.eventType === "serving_task.offered" ? event.payload.expires_at : null,
  };
}
