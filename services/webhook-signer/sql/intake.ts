/** Turning events into deliveries. */
import type { PublishedRoboticsEvent } from "../../bus/messages/robotics-events.ts";
import type { DeliveryStatus } from "../../bus/messages/webhook-deliveries.ts";
import type { Database, Transaction } from "../../db/pool.ts";
import { endedAs } from "./deliveries.ts";

/** Stores which events are taken. Returns the ids of those that are new. */
export async function insertEvents(
  sql: Transaction,
  events: readonly PublishedRoboticsEvent[],
): Promise<ReadonlySet<number>> {
  const rows = events.map(({ eventId, event }) => ({
    event_id: eventId,
    organization_id: event.organizationId,
    filial_id: event.filialId,
    event_type: event.eventType,
  }));
  // In the order of the ids, so that two transactions with the same events never wait for each other.
  const inserted = await sql<{ event_id: number }[]>`
    insert into webhook_events (event_id, organization_id, filial_id, event_type)
    select r.event_id, r.organization_id, r.filial_id, r.event_type
    from jsonb_to_recordset(${sql.json(rows)})
      as r (event_id bigint, organization_id bigint, filial_id bigint, event_type text)
    order by r.event_id
    on conflict (event_id) do nothing
    returning event_id`;
  return new Set(inserted.map((row) => row.event_id));
}

interface ConsumerRow {
  readonly consumer_id: number;
  readonly filial_id: number;
}

/**
 * The named consumers, and all consumers of the named filials. Deliveries to a suspended consumer wait until it is
 * active again.
 */
export async function listConsumers(
  sql: Transaction,
  of: { readonly consumerIds: readonly number[]; readonly filialIds: readonly number[] },
): Promise<readonly ConsumerRow[]> {
  return await sql<ConsumerRow[]>`
    select consumer_id, filial_id from robotics_consumers
    where consumer_id = any(${[...of.consumerIds]}::bigint[])
      or filial_id = any(${[...of.filialIds]}::bigint[])
    order by consumer_id`;
}

interface TargetRow {
  readonly consumer_id: number;
  readonly endpoint_id: number;
  readonly status: "active" | "paused" | "disabled";
}

/**
 * The consumers' endpoints, locked: no other transaction disables or deletes one until this one ends. So no delivery
 * waits for an endpoint that is gone.
 */
export async function holdEndpoints(sql: Transaction, consumerIds: readonly number[]): Promise<readonly TargetRow[]> {
  return await sql<TargetRow[]>`
    select consumer_id, endpoint_id, status from webhook_endpoints
    where consumer_id = any(${[...consumerIds]}::bigint[]) and deleted_at is null
    order by endpoint_id for key share`;
}

/** The first half of the advisory locks that order the writers of one consumer's deliveries. */
const DELIVERIES_LOCK_CLASS = 0x0d31;

/**
 * Takes ids for new deliveries, and locks their consumers until the transaction ends. Without the locks a larger id could be
 * committed before a smaller one, and a reader that continues after the larger id would miss the smaller one.
 */
export async function takeDeliveryIds(
  sql: Transaction,
  { consumerIds, count }: { readonly consumerIds: readonly number[]; readonly count: number },
): Promise<readonly number[]> {
  const ordered = [...new Set(consumerIds)].toSorted((a, b) => a - b);
  await sql`
    select pg_advisory_xact_lock(${DELIVERIES_LOCK_CLASS}, (consumer_id % 2147483647)::int)
    from unnest(${ordered}::bigint[]) as c (consumer_id)`;
  const rows = await sql<{ delivery_id: number }[]>`
    select nextval(pg_get_serial_sequence('webhook_deliveries', 'delivery_id')) as delivery_id
    from generate_series(1, ${count}::int)`;
  return rows.map((row) => row.delivery_id).toSorted((a, b) => a - b);
}

export interface NewDelivery {
  readonly deliveryId: number;
  readonly organizationId: number;
  readonly consumerId: number;
  readonly endpointId: number | null;
  /** Null for an owner's test. */
  readonly eventId: number | null;
  readonly eventType: string;
  readonly body: string;
  readonly status: Extract<DeliveryStatus, "pending" | "unsent" | "failed">;
  /** The deadline of an offer. */
  readonly lapsesAt: string | null;
  /** Of the request that caused it. */
  readonly requestId: string | undefined;
}

export async function insertDeliveries(sql: Transaction, deliveries: readonly NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  await sql`
    insert into webhook_deliveries (delivery_id, organization_id, consumer_id, endpoint_id, event_id, event_type, body,
      status, due_at, lapses_at, request_id)
    select r."deliveryId", r."organizationId", r."consumerId", r."endpointId", r."eventId", r."eventType", r.body,
      r.status, case when r.status = 'pending' then now() end, r."lapsesAt", r."requestId"
    from jsonb_to_recordset(${sql.json(deliveries.map((one) => ({ ...one })))}) as r (
      "deliveryId" bigint, "organizationId" bigint, "consumerId" bigint, "endpointId" bigint, "eventId" bigint,
      "eventType" text, body text, status text, "lapsesAt" timestamptz, "requestId" text)`;
}

interface LostEventRow {
  readonly outbox_id: number;
  readonly event: unknown;
  readonly request_id: string | null;
}

/**
 * Events that the bus has lost: the relay has published them some time ago, and they never arrived here. The outbox still
 * has them. Checks those delivered within `withinMs`, or all.
 */
export async function listLostEvents(
  sql: Database,
  {
    olderThanMs,
    withinMs,
    limit,
  }: { readonly olderThanMs: number; readonly withinMs: number | undefined; readonly limit: number },
): Promise<readonly LostEventRow[]> {
  const recent =
    withinMs === undefined ? sql`` : sql`and o.delivered_at > now() - ${withinMs}::float8 * interval '1 millisecond'`;
  return await sql<LostEventRow[]>`
    select o.outbox_id, o.payload -> 'event' as event, o.request_id from outbox o
    where o.kind = 'robotics_event' and o.failed_reason is null
      and o.delivered_at < now() - ${olderThanMs}::float8 * interval '1 millisecond' ${recent}
      and not exists (select from webhook_events e where e.event_id = o.outbox_id)
    order by o.delivered_at, o.outbox_id limit ${limit}`;
}

/** Records an unreadable event as taken, so that it is logged once. */
export async function insertUnreadableEvent(sql: Database, eventId: number): Promise<void> {
  await sql`
    insert into webhook_events (event_id, organization_id, filial_id, event_type) values (${eventId}, 0, 0, 'unreadable')
    on conflict do nothing`;
}

/** Ends offers that have expired while they waited for a paused endpoint or an open breaker. Returns how many. */
export async function lapseOffers(sql: Database, limit: number): Promise<number> {
  const result = await sql`
    update webhook_deliveries set ${endedAs(sql, "lapsed")}
    where delivery_id in (
      select delivery_id from webhook_deliveries
      where status = 'pending' and lapses_at <= now()
      order by delivery_id limit ${limit} for no key update skip locked)`;
  return result.count;
}
