/** Turning events into deliveries. */
import type { PublishedRoboticsEvent } from "../../bus/messages/robotics-events.ts";
import type { DeliveryStatus } from "../../bus/messages/webhooks.ts";
import type { Database, Transaction } from "../../db/pool.ts";
import type { ClaimedRow } from "./claims.ts";

/** Writes down which events are taken; returns the ids of those that were not yet. */
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
  // In the order of the ids everywhere, so that two transactions with the same events never wait for each other.
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

export interface TargetRow {
  readonly consumer_id: number;
  readonly filial_id: number;
  /** Null for a consumer without an endpoint. */
  readonly endpoint_id: number | null;
  readonly status: "active" | "paused" | "disabled" | null;
}

/** The consumers named, and all active ones of the filials named, each with its endpoints. */
export async function listTargets(
  sql: Transaction,
  of: { readonly consumerIds: readonly number[]; readonly filialIds: readonly number[] },
): Promise<readonly TargetRow[]> {
  return await sql<TargetRow[]>`
    select c.consumer_id, c.filial_id, e.endpoint_id, e.status
    from robotics_consumers c
    left join webhook_endpoints e on e.consumer_id = c.consumer_id and e.deleted_at is null
    where c.consumer_id = any(${[...of.consumerIds]}::bigint[])
      or (c.filial_id = any(${[...of.filialIds]}::bigint[]) and c.status = 'active')
    order by c.consumer_id, e.endpoint_id`;
}

/** The first half of the advisory locks that order the writers of one consumer's deliveries. */
const DELIVERIES_LOCK_CLASS = 0x0d31;

/**
 * Takes ids for new deliveries. The locks on their consumers are held to the end of the transaction: without them a later
 * id could be seen before an earlier one that is still uncommitted, and whoever reads on behind it would miss that one.
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
  readonly status: Extract<DeliveryStatus, "pending" | "unsent">;
  /** An offer's own deadline. */
  readonly lapsesAt: string | null;
}

export async function insertDeliveries(sql: Transaction, deliveries: readonly NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  await sql`
    insert into webhook_deliveries (delivery_id, organization_id, consumer_id, endpoint_id, event_id, event_type, body,
      status, due_at, lapses_at)
    select r."deliveryId", r."organizationId", r."consumerId", r."endpointId", r."eventId", r."eventType", r.body,
      r.status, case when r.status = 'pending' then now() end, r."lapsesAt"
    from jsonb_to_recordset(${sql.json(deliveries.map((one) => ({ ...one })))}) as r (
      "deliveryId" bigint, "organizationId" bigint, "consumerId" bigint, "endpointId" bigint, "eventId" bigint,
      "eventType" text, body text, status text, "lapsesAt" timestamptz)`;
}

/**
 * Events that the relay has given to the bus long enough ago, and that never arrived here: the bus has lost them. The
 * outbox still has them.
 */
export async function listLostEvents(
  sql: Database,
  { olderThanMs, limit }: { readonly olderThanMs: number; readonly limit: number },
): Promise<readonly { readonly outbox_id: number; readonly event: unknown }[]> {
  return await sql<{ outbox_id: number; event: unknown }[]>`
    select o.outbox_id, o.payload -> 'event' as event from outbox o
    where o.kind = 'robotics_event' and o.failed_reason is null
      and o.delivered_at < now() - ${olderThanMs}::float8 * interval '1 millisecond'
      and not exists (select from webhook_events e where e.event_id = o.outbox_id)
    order by o.outbox_id limit ${limit}`;
}

/** A delivery that its maker sends itself, at once: nobody else looks at it meanwhile. */
export async function claimForTest(
  sql: Transaction,
  {
    deliveryId,
    claimedBy,
    claimMs,
  }: { readonly deliveryId: number; readonly claimedBy: string; readonly claimMs: number },
): Promise<ClaimedRow> {
  const [row] = await sql<[ClaimedRow]>`
    update webhook_deliveries set claimed_by = ${claimedBy}, attempts = attempts + 1,
      due_at = now() + ${claimMs}::float8 * interval '1 millisecond'
    where delivery_id = ${deliveryId}
    returning delivery_id, endpoint_id, event_type, body, attempts, true as is_manual, lapses_at, now() as was_due_at`;
  return row;
}
