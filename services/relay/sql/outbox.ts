/** The reading side of the outbox. */
import type { OutboxRow } from "../../db/outbox.ts";
import type { Database } from "../../db/pool.ts";

/** A row that is not delivered yet; its `payload` in the table is an `OutboxRow` without its key and kind. */
export type PendingRow = OutboxRow & {
  readonly outboxId: number;
  /** Of the request that wrote the row. */
  readonly requestId?: string | undefined;
};

/**
 * Up to `limit` keys behind `after` that have undelivered rows, in the order of the index. It hops from key to key, so
 * that one key's long queue costs no more than a short one.
 */
export async function listPendingKeys(sql: Database, after: string, limit: number): Promise<readonly string[]> {
  const [row] = await sql<[{ keys: string[] }]>`
    with recursive pending (key) as (
      (select key from outbox where delivered_at is null and key > ${after} order by key limit 1)
      union all
      select (select next.key from outbox next
        where next.delivered_at is null and next.key > pending.key order by next.key limit 1)
      from pending where pending.key is not null
    )
    select array(select key from pending where key is not null limit ${limit}) as keys`;
  return row.keys;
}

/**
 * The key's next undelivered rows, in the order of delivery: descriptions of the station first, then the oldest. Removes the
 * descriptions of orders that have a newer revision by now: a station remembers its newest orders only, and would take a late
 * description of a paid one for a new order. The station has the newer revision from its own payment, or by a row behind this
 * one.
 */
export async function listPendingRows(sql: Database, key: string, limit: number): Promise<PendingRow[]> {
  const rows = await sql<{ outbox_id: number; kind: string; payload: object; request_id: string | null }[]>`
    with outdated as (
      delete from outbox o using orders r
      where o.key = ${key} and o.delivered_at is null and o.kind = 'station_command'
        and o.payload #>> '{command,type}' = 'order_put'
        and r.order_id = (o.payload #>> '{command,order,orderId}')::bigint
        and r.revision > (o.payload #>> '{command,order,revision}')::bigint
      returning o.outbox_id)
    select outbox_id, kind, payload, request_id from outbox
    where key = ${key} and delivered_at is null and outbox_id not in (select outbox_id from outdated)
    order by kind <> 'station_command' or payload #>> '{command,type}' <> 'station_put', outbox_id limit ${limit}`;
  return rows.map(({ kind, payload, outbox_id: outboxId, request_id }) => {
    return { key, kind, ...payload, outboxId, requestId: request_id ?? undefined } as PendingRow;
  });
}

/** Whether no description of a lost station is under way: the recovery has restored all stations, and no row has one. */
export async function isStationRestored(sql: Database, key: string): Promise<boolean> {
  const [row] = await sql<[{ restored: boolean }]>`
    select not exists (select from bus_announcements where part = 'stations' and finished_at is null)
      and not exists (
        select from outbox where key = ${key} and delivered_at is null and kind = 'station_command'
          and payload #>> '{command,type}' = 'station_put') as restored`;
  return row.restored;
}

/** Marks a row as done: where it was stored, or why it was refused for good. */
export async function markDelivered(
  sql: Database,
  outboxId: number,
  result: { readonly stream: string | null; readonly sequence: number | null; readonly failedReason: string | null },
): Promise<void> {
  await sql`
    update outbox set delivered_at = now(), stream = ${result.stream}, sequence = ${result.sequence}, failed_reason = ${result.failedReason}
    where outbox_id = ${outboxId} and delivered_at is null`;
}

export interface PendingSummary {
  readonly rows: number;
  readonly oldestAgeMs: number;
}

/** How many rows wait, counted to `limit`, and how long the oldest of those counted has waited. */
export async function summarizePendingRows(sql: Database, limit: number): Promise<PendingSummary> {
  const [row] = await sql<[{ rows: number; oldest_age_ms: number }]>`
    select count(*)::int as rows,
           coalesce(extract(epoch from clock_timestamp() - min(created_at)) * 1000, 0)::float8 as oldest_age_ms
    from (select created_at from outbox where delivered_at is null limit ${limit}) as pending`;
  return { rows: row.rows, oldestAgeMs: row.oldest_age_ms };
}

export interface DeliveredRows {
  readonly kind: OutboxRow["kind"];
  /** Where they were stored, and the furthest of their sequences; both are null for rows that were refused. */
  readonly stream: string | null;
  readonly sequence: number | null;
}

/**
 * What was delivered of the key within the last `withinMs`, by kind and stream. Rows are delivered one after another, so it
 * goes back row by row and reads no older row. Only descriptions of the station may be delivered before older rows.
 */
export async function listDeliveredRows(sql: Database, key: string, withinMs: number): Promise<DeliveredRows[]> {
  return sql<DeliveredRows[]>`
    with recursive newest as (
      (select outbox_id, kind, stream, sequence, delivered_at, payload from outbox
        where key = ${key} and delivered_at is not null order by outbox_id desc limit 1)
      union all
      select before.* from newest cross join lateral (
        select outbox_id, kind, stream, sequence, delivered_at, payload from outbox
        where key = ${key} and delivered_at is not null and outbox_id < newest.outbox_id
        order by outbox_id desc limit 1) before
      where newest.delivered_at > now() - ${withinMs}::float8 * interval '1 millisecond'
        or newest.payload #>> '{command,type}' = 'station_put'
    )
    select kind, stream, max(sequence) as sequence from newest
    where delivered_at > now() - ${withinMs}::float8 * interval '1 millisecond' group by kind, stream`;
}

/** The newest entry of each bucket that was delivered within the last `withinMs`. */
export async function listDeliveredEntries(sql: Database, withinMs: number): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ stream: string; sequence: number }[]>`
    select stream, max(sequence) as sequence from outbox
    where delivered_at > now() - ${withinMs}::float8 * interval '1 millisecond'
      and kind in ('credential_put', 'credential_delete', 'session_put', 'session_delete', 'switch_set')
      and sequence is not null
    group by stream`;
  return new Map(rows.map(({ stream, sequence }) => [stream, sequence]));
}

/**
 * Removes up to `limit` delivered rows that are past their retention and left no marker; returns how many. An event of
 * robotics stays until the webhook signer has taken it: if the bus loses the event, no other place has it.
 */
export async function deleteDeliveredRows(sql: Database, olderThanHours: number, limit: number): Promise<number> {
  const result = await sql`
    delete from outbox where outbox_id in (
      select outbox_id from outbox
      where delivered_at < now() - ${olderThanHours}::float8 * interval '1 hour'
        and failed_reason is null and kind <> 'credential_delete'
        and (kind <> 'robotics_event' or exists (select from webhook_events e where e.event_id = outbox_id))
      limit ${limit})`;
  return result.count;
}

interface MarkedRow {
  readonly outbox_id: number;
  /** The hash of the deleted credential, in hex; null for a failed row of another kind. */
  readonly deleted_hash: string | null;
}

/** Up to `limit` failed rows and deletions of credentials that are past their retention. */
export async function listOldMarkedRows(sql: Database, olderThanHours: number, limit: number): Promise<MarkedRow[]> {
  return sql<MarkedRow[]>`
    select outbox_id, case when kind = 'credential_delete' then payload ->> 'hash' end as deleted_hash from outbox
    where delivered_at < now() - ${olderThanHours}::float8 * interval '1 hour'
      and (failed_reason is not null or kind = 'credential_delete')
    order by delivered_at limit ${limit}`;
}

export async function deleteRows(sql: Database, outboxIds: readonly number[]): Promise<void> {
  await sql`delete from outbox where outbox_id = any(${[...outboxIds]}::bigint[])`;
}
