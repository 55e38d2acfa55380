import type { JSONValue } from "postgres";
import type { Caller } from "../../bus/messages/caller.ts";
import type { Transaction } from "../../db/pool.ts";

export interface RegistryActor {
  readonly kind: "user" | "device" | "operator";
  readonly id: number;
  readonly name: string;
}

/** Whoever operates the installation; acts on the bus only. */
export const OPERATOR: RegistryActor = { kind: "operator", id: 0, name: "operator" };

export function userActor(caller: Pick<Caller, "userId" | "name">): RegistryActor {
  return { kind: "user", id: caller.userId, name: caller.name };
}

export type SubjectKind = "organization" | "filial" | "station" | "device" | "enrollment_code" | "user" | "session";

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
