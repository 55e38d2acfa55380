/** The audit log of configs and issues: who did what, and why. */

import type { ActorKind } from "../../bus/messages/caller.ts";
import { type EventPage, eventPage } from "../../db/event-page.ts";
import type { Json, Queryable, Transaction } from "../../db/pool.ts";

/** Who did it, with the name of that moment. */
export interface ProviderActor {
  readonly kind: ActorKind;
  readonly id: number;
  readonly name: string;
}

export interface ProviderEvent {
  readonly organizationId: number;
  readonly actor: ProviderActor;
  readonly action: string;
  readonly subject: { readonly kind: "provider_config" | "provider_issue"; readonly id: number };
  /** What changed and why; never a secret (I9). */
  readonly data: Readonly<Record<string, Json>>;
}

/** The first half of the advisory locks that order the events of one organization; the second half is its id, hashed. */
const EVENT_LOCK_CLASS = 0xe7e8;

/**
 * Locks the organizations' audit logs until the transaction ends, so that the ids of one organization grow in the order of
 * the commits: a reader that goes on from the last id it has read misses nothing. So this comes after every row lock of a
 * transaction, and before its outbox rows. All transactions lock in the same order, so that none waits in a circle.
 */
async function lockAuditLogs(sql: Transaction, organizationIds: readonly number[]): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(${EVENT_LOCK_CLASS}, key)
    from (select distinct hashint8(id) as key from unnest(${[...organizationIds]}::bigint[]) as id order by key) keys`;
}

/** Written in the transaction of the change itself, so that neither is without the other. */
export async function recordEvents(sql: Transaction, events: readonly ProviderEvent[]): Promise<void> {
  await lockAuditLogs(
    sql,
    events.map((event) => event.organizationId),
  );
  for (const { organizationId, actor, action, subject, data } of events) {
    await sql`
      insert into provider_events
        (organization_id, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data)
      values (${organizationId}, ${actor.kind}, ${actor.id}, ${actor.name}, ${action}, ${subject.kind}, ${subject.id},
        ${sql.json(data)})`;
  }
}

export interface ProviderEventRow {
  readonly event_id: number;
  readonly at: Date;
  readonly actor_role: ActorKind;
  readonly actor_id: number;
  readonly actor_name: string;
  readonly action: string;
  readonly subject_kind: ProviderEvent["subject"]["kind"];
  readonly subject_id: number;
  readonly data: Record<string, unknown>;
}

/** The organization's events: oldest first after `sinceId`; without it newest first, before `beforeId` if that is given. */
export async function listProviderEvents(
  sql: Queryable,
  page: EventPage & { readonly organizationId: number; readonly limit: number },
): Promise<ProviderEventRow[]> {
  const { organizationId, limit } = page;
  return sql<ProviderEventRow[]>`
    select event_id, at, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data from provider_events
    where organization_id = ${organizationId} ${eventPage(sql, page)} limit ${limit}`;
}
