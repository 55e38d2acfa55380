import type { JSONValue } from "postgres";
import type { Caller } from "../../bus/messages/caller.ts";
import type { REGISTRY_ACTORS, REGISTRY_SUBJECTS } from "../../bus/messages/registry.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface RegistryActor {
  readonly kind: (typeof REGISTRY_ACTORS)[number];
  readonly id: number;
  readonly name: string;
}

/** Whoever operates the installation; acts on the bus only. */
export const OPERATOR: RegistryActor = { kind: "operator", id: 0, name: "operator" };

export function userActor(caller: Pick<Caller, "userId" | "name">): RegistryActor {
  return { kind: "user", id: caller.userId, name: caller.name };
}

export type SubjectKind = (typeof REGISTRY_SUBJECTS)[number];

/** One entry of the owner's audit trail. `data` tells what changed; it never holds a secret (I9). */
export interface RegistryEvent {
  readonly organizationId: number;
  readonly actor: RegistryActor;
  readonly action: string;
  readonly subject: { readonly kind: SubjectKind; readonly id: number };
  readonly data?: Readonly<Record<string, JSONValue>>;
}

/** Written in the transaction of the change itself, so that neither is without the other. */
export async function recordEvent(sql: Transaction, event: RegistryEvent): Promise<void> {
  const { organizationId, actor, action, subject } = event;
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

/** The organization's events after one of them, oldest first. */
export async function selectEvents(
  sql: Queryable,
  page: { readonly organizationId: number; readonly sinceId: number; readonly limit: number },
): Promise<RegistryEventRow[]> {
  return sql<RegistryEventRow[]>`
    select event_id, at, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data from registry_events
    where organization_id = ${page.organizationId} and event_id > ${page.sinceId}
    order by event_id limit ${page.limit}`;
}
