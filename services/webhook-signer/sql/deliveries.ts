/** Deliveries and their attempts: reading them, one more attempt, and their end. */
import type { DeliveryState, DeliveryStep, ScheduledState } from "../../../machines/webhook-delivery.ts";
import type { AttemptError, Delivery, DeliveryStatus } from "../../bus/messages/webhook-deliveries.ts";
import type { Database, ExpiredRows, Queryable, Transaction } from "../../db/pool.ts";
import { currentRequestId } from "../../runtime/log.ts";

export interface DeliveryRow {
  readonly delivery_id: number;
  readonly organization_id: number;
  readonly consumer_id: number;
  readonly endpoint_id: number | null;
  readonly event_id: number | null;
  readonly event_type: Delivery["eventType"];
  readonly body: string;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  readonly due_at: Date | null;
  readonly created_at: Date;
  readonly delivered_at: Date | null;
}

const columns = (sql: Queryable) => sql`
  delivery_id, organization_id, consumer_id, endpoint_id, event_id, event_type, body, status, attempts,
  due_at, created_at, delivered_at`;

/** What the machine knows of a delivery. */
export interface StepRow {
  readonly status: DeliveryStatus;
  readonly attempts: number;
  readonly manual_attempts: number;
  readonly asked: number;
  readonly manual_of: ScheduledState | null;
  readonly due_at_ms: number | null;
  readonly planned_at_ms: number | null;
  readonly delivered_at_ms: number | null;
  readonly lapses_at_ms: number | null;
}

/** Times as milliseconds since the epoch; a float8 keeps their microseconds. */
export const stepColumns = (sql: Queryable) => sql`
  status, attempts, manual_attempts, asked, manual_of,
  (extract(epoch from due_at) * 1000)::float8 as due_at_ms,
  (extract(epoch from planned_at) * 1000)::float8 as planned_at_ms,
  (extract(epoch from delivered_at) * 1000)::float8 as delivered_at_ms,
  (extract(epoch from lapses_at) * 1000)::float8 as lapses_at_ms`;

/** The delivery of a row. `manual_of` is set while one more attempt is requested; the row's status is `pending` then. */
export function deliveryStep(row: StepRow): DeliveryStep {
  const value: DeliveryState = row.status === "pending" && row.manual_of !== null ? "requested" : row.status;
  return {
    value,
    context: {
      attempts: row.attempts,
      manualAttempts: row.manual_attempts,
      requests: row.asked,
      dueAtMs: row.due_at_ms,
      before: row.manual_of,
      plannedAtMs: row.planned_at_ms,
      deliveredAtMs: row.delivered_at_ms,
      lapsesAtMs: row.lapses_at_ms,
    },
  };
}

/** The machine's LAPSE and END for any number of pending deliveries; a test compares it with the machine. */
export const endedAs = (sql: Queryable, status: "failed" | "lapsed") => sql`
  status = case when delivered_at is null then ${status} else 'delivered' end,
  due_at = null, manual_of = null, planned_at = null, ended_at = now()`;

interface DeliveryFilters {
  readonly eventType: string | undefined;
  readonly status: DeliveryStatus | undefined;
}

const filtered = (sql: Queryable, { eventType, status }: DeliveryFilters) => sql`
  ${eventType === undefined ? sql`` : sql`and event_type = ${eventType}`}
  ${status === undefined ? sql`` : sql`and status = ${status}`}`;

/** A consumer's deliveries after an id, in the order of the ids, which is the order of the commits. */
export async function listConsumerWebhookDeliveries(
  sql: Queryable,
  page: DeliveryFilters & { readonly consumerId: number; readonly sinceId: number; readonly limit: number },
): Promise<readonly DeliveryRow[]> {
  return await sql<DeliveryRow[]>`
    select ${columns(sql)} from webhook_deliveries
    where consumer_id = ${page.consumerId} and delivery_id > ${page.sinceId} ${filtered(sql, page)}
    order by delivery_id limit ${page.limit}`;
}

interface OwnerPage extends DeliveryFilters {
  readonly organizationId: number;
  readonly endpointId: number | undefined;
  readonly consumerId: number | undefined;
  readonly beforeId: number | undefined;
  readonly limit: number;
}

/** An organization's deliveries, newest first: the newest of each of its consumers, and of these the newest. */
export async function listWebhookDeliveries(sql: Queryable, page: OwnerPage): Promise<readonly DeliveryRow[]> {
  const { endpointId, consumerId, beforeId } = page;
  return await sql<DeliveryRow[]>`
    select own.* from robotics_consumers c cross join lateral (
      select ${columns(sql)} from webhook_deliveries
      where consumer_id = c.consumer_id
        ${beforeId === undefined ? sql`` : sql`and delivery_id < ${beforeId}`}
        ${endpointId === undefined ? sql`` : sql`and endpoint_id = ${endpointId}`}
        ${filtered(sql, page)}
      order by delivery_id desc limit ${page.limit}
    ) own
    where c.organization_id = ${page.organizationId}
      ${consumerId === undefined ? sql`` : sql`and c.consumer_id = ${consumerId}`}
    order by own.delivery_id desc limit ${page.limit}`;
}

export async function getWebhookDelivery(
  sql: Queryable,
  { organizationId, deliveryId }: { readonly organizationId: number; readonly deliveryId: number },
): Promise<DeliveryRow | undefined> {
  const [row] = await sql<DeliveryRow[]>`
    select ${columns(sql)} from webhook_deliveries
    where organization_id = ${organizationId} and delivery_id = ${deliveryId}`;
  return row;
}

/**
 * Locks the delivery's endpoint until the transaction ends; undefined when it has none, or it was deleted. The endpoint is
 * locked before its deliveries, in the same order as the writer of outcomes does.
 */
export async function lockEndpointOf(
  sql: Transaction,
  { consumerId, deliveryId }: { readonly consumerId: number; readonly deliveryId: number },
): Promise<LockedEndpointRow | undefined> {
  const [row] = await sql<LockedEndpointRow[]>`
    select endpoint_id, status from webhook_endpoints
    where deleted_at is null and endpoint_id = (
      select endpoint_id from webhook_deliveries where consumer_id = ${consumerId} and delivery_id = ${deliveryId})
    for no key update`;
  return row;
}

interface LockedEndpointRow {
  readonly endpoint_id: number;
  readonly status: "active" | "paused" | "disabled";
}

/** Lets an open breaker's probe through now. The new generation makes the sending process read the row again. */
export async function openForProbe(sql: Transaction, endpointId: number): Promise<void> {
  await sql`
    update webhook_endpoints set open_until = now() - interval '1 second', generation = generation + 1
    where endpoint_id = ${endpointId} and open_until > now()`;
}

interface RedeliverableRow extends DeliveryRow, Omit<StepRow, keyof DeliveryRow> {
  /** PostgreSQL's time. */
  readonly now_ms: number;
  /** When the next delivery to the same endpoint is due, this one included. */
  readonly next_due_at_ms: number | null;
}

/** The consumer's delivery, locked. */
export async function lockForRedelivery(
  sql: Transaction,
  { consumerId, deliveryId }: { readonly consumerId: number; readonly deliveryId: number },
): Promise<RedeliverableRow | undefined> {
  const [row] = await sql<RedeliverableRow[]>`
    select delivery_id, organization_id, consumer_id, endpoint_id, event_id, event_type, body, created_at, due_at,
      delivered_at, ${stepColumns(sql)}, (extract(epoch from now()) * 1000)::float8 as now_ms,
      (select extract(epoch from min(due_at)) * 1000 from webhook_deliveries other
        where other.endpoint_id = d.endpoint_id and other.status = 'pending')::float8 as next_due_at_ms
    from webhook_deliveries d
    where consumer_id = ${consumerId} and delivery_id = ${deliveryId} for no key update`;
  return row;
}

/**
 * Stores the time of the request. Returns false for a key that the delivery has already. A delivery has one row for all
 * requests without a key: no key is empty.
 */
export async function insertRedelivery(
  sql: Transaction,
  { deliveryId, idempotencyKey = "" }: { readonly deliveryId: number; readonly idempotencyKey: string | undefined },
): Promise<boolean> {
  const result = await sql`
    insert into webhook_redeliveries as r (delivery_id, idempotency_key) values (${deliveryId}, ${idempotencyKey})
    on conflict (delivery_id, idempotency_key) do update set asked_at = now() where r.idempotency_key = ''`;
  return result.count === 1;
}

/** Writes that one more attempt is requested, as the machine has decided; the delivery is locked. */
export async function redeliverWebhook(
  sql: Transaction,
  deliveryId: number,
  { context: { requests, before, plannedAtMs, dueAtMs } }: DeliveryStep,
): Promise<DeliveryRow> {
  const [row] = await sql<[DeliveryRow]>`
    update webhook_deliveries set status = 'pending', asked = ${requests}, manual_of = ${before},
      planned_at = to_timestamp(${plannedAtMs}::float8 / 1e3::float8),
      due_at = to_timestamp(${dueAtMs}::float8 / 1e3::float8), request_id = ${currentRequestId() ?? null}
    where delivery_id = ${deliveryId}
    returning ${columns(sql)}`;
  return row;
}

export interface AttemptRow {
  readonly attempt_id: number;
  readonly started_at: Date;
  readonly address: string | null;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number | null;
  readonly status: number | null;
  /** Null exactly for a success. */
  readonly error: AttemptError | null;
  readonly response_body: string;
  readonly is_truncated: boolean;
  readonly is_manual: boolean;
}

/** Newest first. */
export async function listAttempts(sql: Queryable, deliveryId: number, limit: number): Promise<readonly AttemptRow[]> {
  return await sql<AttemptRow[]>`
    select attempt_id, started_at, address, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, status, error,
      response_body, is_truncated, is_manual
    from webhook_attempts where delivery_id = ${deliveryId} order by attempt_id desc limit ${limit}`;
}

/**
 * Ends the deliveries that wait for these endpoints. One that was delivered before, and waited for one more attempt, is
 * `delivered`.
 */
export async function endPending(sql: Transaction, endpointIds: readonly number[]): Promise<void> {
  if (endpointIds.length === 0) return;
  await sql`
    with waiting as materialized (
      select delivery_id from webhook_deliveries
      where endpoint_id = any(${[...endpointIds]}::bigint[]) and status = 'pending'
      order by delivery_id for no key update
    )
    update webhook_deliveries set ${endedAs(sql, "failed")} where delivery_id in (select delivery_id from waiting)`;
}

/**
 * Deletes deliveries that ended long ago, and their attempts. Returns how many. No delivery ends before its event, so the
 * index by `created_at` finds them. Leaves out a delivery that another transaction has locked: it may be requested again.
 */
export async function deleteOldDeliveries(sql: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const result = await sql`
    with old as (
      delete from webhook_deliveries where delivery_id in (
        select delivery_id from webhook_deliveries
        where status <> 'pending' and created_at < now() - ${olderThanDays}::float8 * interval '1 day'
          and coalesce(ended_at, created_at) < now() - ${olderThanDays}::float8 * interval '1 day'
        limit ${rows} for update skip locked)
      returning delivery_id
    ), attempts as (
      delete from webhook_attempts a using old where a.delivery_id = old.delivery_id
    )
    select from old`;
  return result.count;
}

/**
 * Fails deliveries that have waited longer than `olderThanDays` for a paused endpoint or a suspended consumer. Returns how
 * many. A redelivery waits from its request: its `due_at` is only its place before all other deliveries.
 */
export async function endForgottenDeliveries(sql: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const result = await sql`
    update webhook_deliveries set ${endedAs(sql, "failed")}
    where delivery_id in (
      select d.delivery_id from webhook_endpoints e join robotics_consumers c using (consumer_id) cross join lateral (
        select delivery_id from webhook_deliveries waiting
        where endpoint_id = e.endpoint_id and status = 'pending'
          and due_at < now() - ${olderThanDays}::float8 * interval '1 day'
          and not exists (
            select from webhook_redeliveries r
            where r.delivery_id = waiting.delivery_id and waiting.manual_of is not null
              and r.asked_at >= now() - ${olderThanDays}::float8 * interval '1 day')
        order by due_at limit ${rows} for no key update skip locked
      ) d
      where (e.status = 'paused' or c.status = 'suspended') and e.deleted_at is null limit ${rows})`;
  return result.count;
}

/**
 * Deletes the records of taken events. A record stays while the outbox has its event, which would otherwise be taken again.
 */
export async function deleteOldEvents(sql: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const result = await sql`
    delete from webhook_events where event_id in (
      select event_id from webhook_events e
      where taken_at < now() - ${olderThanDays}::float8 * interval '1 day'
        and not exists (select from outbox where outbox_id = e.event_id)
      limit ${rows})`;
  return result.count;
}
