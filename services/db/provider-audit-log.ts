/**
 * The audit log of provider configs and issues: who did what, when and why. The services that raise and resolve issues
 * write it, in one table.
 */
import type { ActorKind } from "../bus/messages/caller.ts";
import type { PROVIDER_EVENT_SUBJECTS } from "../bus/messages/provider-events.ts";
import { lockInTurn } from "./lock-in-turn.ts";
import type { Json, Transaction } from "./pool.ts";

/** Who acts, with the name at that time. */
export interface ProviderActor {
  readonly kind: ActorKind;
  readonly id: number;
  readonly name: string;
}

/** The actor of changes without a person. */
export const SYSTEM: ProviderActor = { kind: "system", id: 0, name: "system" };

export interface ProviderEvent {
  readonly organizationId: number;
  readonly actor: ProviderActor;
  readonly action: string;
  readonly subject: { readonly kind: (typeof PROVIDER_EVENT_SUBJECTS)[number]; readonly id: number };
  /** What has changed and why; never a secret (I9). */
  readonly data: Readonly<Record<string, Json>>;
}

/** The first half of the advisory locks that order the events of one organization; the second half is its id, hashed. */
const EVENT_LOCK_CLASS = 0xe7e8;

/**
 * Records events in the transaction of the change, so that neither is stored without the other. It locks the
 * organizations until the transaction ends, so that the ids of one organization grow in the order of the commits. A
 * reader that continues after the last id that it has read then misses nothing. Call this after every row lock of a
 * transaction, and before its outbox rows.
 */
export async function recordEvents(sql: Transaction, events: readonly ProviderEvent[]): Promise<void> {
  if (events.length === 0) return;
  const organizationIds = events.map((event) => event.organizationId);
  const keys = sql`array(select hashint8(id) from unnest(${organizationIds}::bigint[]) as id)`;
  await lockInTurn(sql, EVENT_LOCK_CLASS, keys);
  const rows = events.map(({ organizationId, actor, action, subject, data }) => ({
    organization_id: organizationId,
    actor_role: actor.kind,
    actor_id: actor.id,
    actor_name: actor.name,
    action,
    subject_kind: subject.kind,
    subject_id: subject.id,
    data,
  }));
  await sql`
    insert into provider_events
      (organization_id, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data)
    select e.* from jsonb_to_recordset(${sql.json(rows)}) as e (organization_id bigint, actor_role text, actor_id bigint,
      actor_name text, action text, subject_kind text, subject_id bigint, data jsonb)`;
}
