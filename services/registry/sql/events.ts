import type { JSONValue } from "postgres";
import type { ActorKind } from "../../bus/messages/caller.ts";
import type { REGISTRY_SUBJECTS } from "../../bus/messages/events.ts";
import { type EventPage, readEvents } from "../../db/event-page.ts";
import { lockInTurn } from "../../db/lock-in-turn.ts";
import type { Fragment, Queryable, Transaction } from "../../db/pool.ts";

export interface RegistryActor {
  readonly kind: Exclude<ActorKind, "settlement" | "system">;
  readonly id: number;
  readonly name: string;
}

export type SubjectKind = (typeof REGISTRY_SUBJECTS)[number];

/** One entry of the audit log. `data` has what changed; it never holds a secret (I9). */
export interface RegistryEvent {
  /** Null for the platform: the event is in every organization's audit log. */
  readonly organizationId: number | null;
  readonly actor: RegistryActor;
  readonly action: string;
  readonly subject: { readonly kind: SubjectKind; readonly id: number };
  readonly data?: Readonly<Record<string, JSONValue>>;
}

/** The first half of the advisory locks that order the events of one organization; the second half is its id, hashed. */
const EVENT_LOCK_CLASS = 0xe7e7;
/**
 * An event of the platform is in every audit log: it waits for all events that are not committed, and all later events
 * wait for it.
 */
const PLATFORM_EVENT_LOCK = 4_711_000_002;

/**
 * Writes the event in the transaction of its change, so that neither is stored without the other. The lock lasts until
 * the transaction ends. It makes the ids of one organization grow in the order of the commits, so that a reader that
 * continues after the last id misses no event. So the call comes after every row lock of a transaction, and before its
 * outbox rows.
 */
export async function recordEvent(sql: Transaction, event: RegistryEvent): Promise<void> {
  const { organizationId, actor, action, subject } = event;
  if (organizationId === null) await sql`select pg_advisory_xact_lock(${PLATFORM_EVENT_LOCK}::bigint)`;
  else {
    await Promise.all([
      sql`select pg_advisory_xact_lock_shared(${PLATFORM_EVENT_LOCK}::bigint)`,
      lockInTurn(sql, EVENT_LOCK_CLASS, sql`array[hashint8(${organizationId})]`),
    ]);
  }
  await sql`
    insert into registry_events
      (organization_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data)
    values (${organizationId}, ${actor.kind}, ${actor.id}, ${actor.name}, ${action}, ${subject.kind}, ${subject.id},
      ${sql.json(event.data ?? {})})`;
}

export interface RegistryEventRow {
  readonly event_id: number;
  readonly at: Date;
  readonly actor_kind: RegistryActor["kind"];
  readonly actor_id: number;
  readonly actor_name: string;
  readonly action: string;
  readonly subject_kind: SubjectKind;
  readonly subject_id: number;
  readonly data: Record<string, unknown>;
}

/**
 * The organization's events and the platform's: oldest first after `sinceId`; without it newest first, before
 * `beforeId` if the page has one.
 */
export async function listEvents(sql: Queryable, page: EventPage & { readonly organizationId: number }) {
  const where = sql`(organization_id = ${page.organizationId} or organization_id is null)`;
  const select = (rows: Fragment) => sql<RegistryEventRow[]>`
    select event_id, at, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data ${rows}`;
  return await readEvents(sql, { table: sql`registry_events`, where, select }, page);
}
