/**
 * Turns events into deliveries. One transaction stores an event and its deliveries, and an event that comes again is ignored.
 * All processes share one durable consumer of the stream. While one batch is written, the next batch gathers. A process
 * acknowledges an event after it is stored, so the events of a process that dies go to the others. A sweep reads from the
 * outbox the events that the bus has lost, and ends the offers that expired while they waited.
 */
import { setTimeout as delay } from "node:timers/promises";
import { AckPolicy, type ConsumerMessages, type JsMsg, jetstream } from "@nats-io/jetstream";
import { nanos } from "nats";
import type { Bus } from "../bus/connection.ts";
import { requestIdOf } from "../bus/deadline.ts";
import {
  type PublishedRoboticsEvent,
  publishedRoboticsEventSchema,
  roboticsEventSchema,
} from "../bus/messages/robotics-events.ts";
import { failuresOf } from "../bus/outage.ts";
import { ROBOTICS_EVENTS } from "../bus/streams.ts";
import type { Database, Transaction } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import type { SignerDeps } from "./deps.ts";
import { SIGNER_LIMITS } from "./limits.ts";
import { envelope } from "./signing.ts";
import {
  holdEndpoints,
  insertDeliveries,
  insertEvents,
  insertUnreadableEvent,
  lapseOffers,
  listConsumers,
  listLostEvents,
  type NewDelivery,
  takeDeliveryIds,
} from "./sql/intake.ts";

const DURABLE = "webhook-signer";

export interface EventFollower {
  stop(): Promise<void>;
}

interface FollowOptions {
  readonly bus: Bus;
  readonly log: Log;
  /** Stores events. When it rejects, the bus delivers them again. */
  readonly take: (events: readonly ArrivedEvent[]) => Promise<void>;
}

/** An event with the id of the request that caused it. */
interface ArrivedEvent extends PublishedRoboticsEvent {
  readonly requestId?: string | undefined;
}

interface Arrived {
  readonly message: JsMsg;
  readonly published: ArrivedEvent;
}

/** Follows the stream until it is stopped, and starts again after each failure. Meanwhile events wait in the stream. */
export function followEvents({ bus, log, take }: FollowOptions): EventFollower {
  const stopping = new AbortController();
  const { signal } = stopping;
  let messages: ConsumerMessages | undefined;
  const run = async (): Promise<void> => {
    let hasWarned = false;
    while (!signal.aborted) {
      try {
        // Added again each time, because a bus that has lost its data has lost the consumer as well.
        messages = await consume(bus);
        // Not awaited: it ends only when its messages are read to their end, as `follow` does.
        if (signal.aborted) void messages.close();
        await follow(messages, { log, take });
        hasWarned = false;
      } catch (error) {
        if (!hasWarned && !signal.aborted) log.warn({ err: error }, "the events of robotics cannot be followed now");
        hasWarned = true;
      }
      await delay(SIGNER_LIMITS.followPauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await messages?.close();
      await running;
    },
  };
}

async function consume({ jsm, nc }: Bus): Promise<ConsumerMessages> {
  const consumer = await jsm.consumers.add(ROBOTICS_EVENTS.name, {
    durable_name: DURABLE,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(SIGNER_LIMITS.ackWaitMs),
    max_ack_pending: SIGNER_LIMITS.eventsPerBatch * 4,
  });
  // The client asks for the consumer again when the server sends nothing more, and waits this long for the answer.
  const js = jetstream(nc, { timeout: SIGNER_LIMITS.consumerAnswerMs });
  return await js.consumers.getConsumerFromInfo(consumer).consume({
    max_messages: SIGNER_LIMITS.eventsPerBatch,
    expires: SIGNER_LIMITS.pullExpiresMs,
    idle_heartbeat: SIGNER_LIMITS.pullHeartbeatMs,
    abort_on_missing_resource: true,
  });
}

/** Writes the messages until they end. Rejects when the stream or its consumer is gone. */
async function follow(messages: ConsumerMessages, { log, take }: Pick<FollowOptions, "log" | "take">): Promise<void> {
  const waiting: Arrived[] = [];
  let writing: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    // Events that arrive in the same turn of the event loop are written together.
    await Promise.resolve();
    while (waiting.length > 0) {
      await writeBatch(waiting.splice(0, SIGNER_LIMITS.eventsPerBatch), { log, take });
    }
    writing = undefined;
  };
  try {
    for await (const message of messages) {
      const published = read(message, log);
      if (published === undefined) continue;
      waiting.push({ message, published });
      writing ??= write();
    }
  } finally {
    await writing;
  }
}

function read(message: JsMsg, log: Log): ArrivedEvent | undefined {
  const requestId = requestIdOf(message);
  try {
    return { ...publishedRoboticsEventSchema.parse(message.json()), requestId };
  } catch (error) {
    // It must not block the others. So a new type of event takes two versions (CONTRIBUTING.md): this one drops it for good.
    const facts = { err: error, sequence: message.seq, requestId };
    log.error(facts, "an event of robotics does not match its schema and is left out");
    message.term();
    return undefined;
  }
}

async function writeBatch(
  batch: readonly Arrived[],
  { log, take }: Pick<FollowOptions, "log" | "take">,
): Promise<void> {
  try {
    await take(batch.map(({ published }) => published));
    for (const { message } of batch) message.ack();
  } catch (error) {
    const failures = failuresOf(log, "events cannot be stored now; the bus delivers them again");
    failures.failed(error, { events: batch.length });
    for (const { message } of batch) message.nak(SIGNER_LIMITS.eventPauseMs);
  }
}

interface EventsTaken {
  readonly events: number;
  readonly deliveries: number;
  /** Owners with something to send. */
  readonly organizationIds: readonly number[];
}

export async function takeEvents(database: Database, published: readonly ArrivedEvent[]): Promise<EventsTaken> {
  if (published.length === 0) return { events: 0, deliveries: 0, organizationIds: [] };
  return await database.begin(async (sql) => {
    const inserted = await insertEvents(sql, published);
    const fresh = published.filter(isFirst(inserted));
    const targets = await targetsOf(sql, fresh);
    const wanted = fresh.flatMap((one) => targets.filter(isTargetOf(one)).map((target) => ({ one, target })));
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
    const ofConsumer = endpoints.filter((endpoint) => endpoint.consumer_id === consumerId);
    if (ofConsumer.length === 0) return [{ consumerId, filialId, endpointId: null, isDisabled: false }];
    return ofConsumer.map(({ endpoint_id: endpointId, status }) => {
      return { consumerId, filialId, endpointId, isDisabled: status === "disabled" };
    });
  });
}

function isTargetOf({ event }: PublishedRoboticsEvent): (target: EventTarget) => boolean {
  const { consumerId, filialId } = event;
  return (target) => (consumerId === null ? target.filialId === filialId : target.consumerId === consumerId);
}

function deliveryOf({ eventId, event, requestId }: ArrivedEvent, target: EventTarget, deliveryId: number): NewDelivery {
  const { organizationId, eventType, createdAt, payload } = event;
  // A delivery to a paused endpoint waits for it. A disabled endpoint gets none.
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
    requestId,
  };
}

type SweepDeps = Pick<SignerDeps, "database" | "log" | "metrics" | "wake">;

/** The periodic work. The first sweep, and then one each `wholeSweepIntervalMs`, checks the whole outbox. */
export function createSweep(deps: SweepDeps): () => Promise<void> {
  let wholeAtMs = Number.NEGATIVE_INFINITY;
  return async () => {
    await lapseOffers(deps.database, SIGNER_LIMITS.lapsedPerSweep);
    const startedAtMs = performance.now();
    const isWhole = startedAtMs - wholeAtMs >= SIGNER_LIMITS.wholeSweepIntervalMs;
    const isDone = await sweepLostEvents(deps, isWhole ? undefined : SIGNER_LIMITS.sweepWindowMs);
    if (isWhole && isDone) wholeAtMs = startedAtMs;
  };
}

/** Returns true when no lost event is left. */
async function sweepLostEvents(deps: SweepDeps, withinMs: number | undefined): Promise<boolean> {
  const { lostAfterMs: olderThanMs, lostPerSweep: limit } = SIGNER_LIMITS;
  const rows = await listLostEvents(deps.database, { olderThanMs, withinMs, limit });
  const lost: ArrivedEvent[] = [];
  for (const { outbox_id: eventId, event, request_id } of rows) {
    const requestId = request_id ?? undefined;
    const parsed = roboticsEventSchema.safeParse(event);
    if (parsed.success) lost.push({ eventId, event: parsed.data, requestId });
    else {
      const facts = { err: parsed.error, eventId, requestId };
      deps.log.error(facts, "an event of robotics does not match its schema and is left out");
      await insertUnreadableEvent(deps.database, eventId);
    }
  }
  for (let at = 0; at < lost.length; at += SIGNER_LIMITS.eventsPerBatch) {
    const taken = await takeEvents(deps.database, lost.slice(at, at + SIGNER_LIMITS.eventsPerBatch));
    if (taken.events === 0) continue;
    const message = "events of robotics had not arrived by the bus, and were taken from the outbox";
    deps.log.warn({ events: taken.events }, message);
    deps.metrics.events.add({}, taken.events);
    deps.metrics.deliveries.add({}, taken.deliveries);
    deps.wake(taken.organizationIds);
  }
  return rows.length < limit;
}
