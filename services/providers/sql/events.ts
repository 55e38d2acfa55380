/** The trail of configs and issues: who did what, and why. */
import type { ActorKind, Caller } from "../../bus/messages/caller.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { Attribution, IssueRow } from "./issues.ts";
import type { Json } from "./json.ts";

/** Who did it, as the trail names them at that moment. */
export interface ProviderActor {
  readonly kind: ActorKind;
  readonly id: number;
  readonly name: string;
}

/** Whoever operates the installation acts on the bus only; the registry's trail names them alike. */
export const OPERATOR: ProviderActor = { kind: "registry", id: 0, name: "operator" };
/** What resolves by itself is nobody's doing. */
export const SYSTEM: ProviderActor = { kind: "system", id: 0, name: "system" };

/** A person by the role. */
export function personActor({ role, userId, name }: Pick<Caller, "role" | "userId" | "name">): ProviderActor {
  return { kind: role, id: userId, name };
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
 * Holds the organizations' trails until the transaction ends, so that the ids of one organization grow in the order of
 * the commits: whoever reads on from the last id that they have seen misses nothing. So this comes after every row lock
 * of a transaction, and before its outbox rows. In one order for all, so that two that hold several never wait for each
 * other.
 */
async function holdTrails(sql: Transaction, organizationIds: readonly number[]): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(${EVENT_LOCK_CLASS}, key)
    from (select distinct hashint8(id) as key from unnest(${[...organizationIds]}::bigint[]) as id order by key) keys`;
}

/** Written in the transaction of the change itself, so that neither is without the other. */
export async function recordEvents(sql: Transaction, events: readonly ProviderEvent[]): Promise<void> {
  await holdTrails(
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

/** An attribution is told when the seam has settled it, in the name of whoever asked for it. */
export async function recordAttribution(
  sql: Transaction,
  issue: Pick<IssueRow, "issue_id" | "organization_id" | "kind" | "transaction_id">,
  { by, reason, orderId, intentId }: Attribution,
): Promise<void> {
  const { issue_id: id, organization_id: organizationId, kind, transaction_id } = issue;
  const data = { kind, reason, order_id: orderId, intent_id: intentId, transaction_id };
  const subject = { kind: "provider_issue", id } as const;
  await recordEvents(sql, [
    { organizationId, actor: personActor(by), action: "provider_issue_attributed", subject, data },
  ]);
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
export async function selectEvents(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly sinceId: number | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<ProviderEventRow[]> {
  const { organizationId, sinceId, beforeId, limit } = page;
  const before = beforeId === undefined ? sql`` : sql`and event_id < ${beforeId}`;
  const part =
    sinceId === undefined
      ? sql`${before} order by event_id desc`
      : sql`and event_id > ${sinceId} ${before} order by event_id`;
  return sql<ProviderEventRow[]>`
    select event_id, at, actor_role, actor_id, actor_name, action, subject_kind, subject_id, data from provider_events
    where organization_id = ${organizationId} ${part} limit ${limit}`;
}
