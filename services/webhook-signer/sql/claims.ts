/** What is to be sent: finding it, claiming it, giving it back. Every claim is fenced by the owner's lease. */
import type { Database } from "../../db/pool.ts";

export interface DueEndpointRow {
  readonly endpoint_id: number;
  readonly url: string;
  readonly mode: "test" | "live";
  readonly generation: number;
  readonly consecutive_failures: number;
  readonly times_opened: number;
  readonly open_until: Date | null;
  readonly failing_since: Date | null;
  readonly failures_since_success: number;
  readonly has_succeeded: boolean;
}

/**
 * The owner's endpoints that may be sent to and have something due, whatever their breaker says; those in `known` in any
 * case, so that one that is missing from the answer is one that must not be sent to any more.
 */
export async function listDueEndpoints(
  sql: Database,
  { organizationId, known }: { readonly organizationId: number; readonly known: readonly number[] },
): Promise<readonly DueEndpointRow[]> {
  return await sql<DueEndpointRow[]>`
    select e.endpoint_id, e.url, c.mode, e.generation, e.consecutive_failures, e.times_opened, e.open_until,
      e.failing_since, e.failures_since_success, e.last_success_at is not null as has_succeeded
    from webhook_endpoints e join robotics_consumers c using (consumer_id)
    where e.organization_id = ${organizationId} and e.deleted_at is null and e.status = 'active'
      and (e.endpoint_id = any(${[...known]}::bigint[]) or exists (select from webhook_deliveries d
        where d.endpoint_id = e.endpoint_id and d.status = 'pending' and d.due_at <= now()))
    order by e.endpoint_id`;
}

export interface ClaimedRow {
  readonly delivery_id: number;
  readonly endpoint_id: number;
  readonly event_type: string;
  readonly body: string;
  /** This one included. */
  readonly attempts: number;
  /** What it was before somebody asked for one more attempt; null for an attempt by the schedule. */
  readonly manual_of: "pending" | "delivered" | "failed" | "lapsed" | "unsent" | null;
  /** For an offer: milliseconds until it expires, by the clock of PostgreSQL. */
  readonly lapses_in_ms: number | null;
  /** When it became due. */
  readonly was_due_at: Date;
}

/** Whose claims they are: this process holds the lease, and one of its senders the claims for as long as it does. */
export interface Claimant {
  readonly organizationId: number;
  readonly signerId: string;
  readonly claimId: string;
}

export interface ClaimRequest extends Claimant {
  /** How long nobody else looks at them. */
  readonly claimMs: number;
  /** How many of which endpoint. */
  readonly wanted: readonly { readonly endpointId: number; readonly count: number }[];
}

/**
 * Claims due deliveries, the longest due first, and counts the attempt: a delivery that kills its process is not tried for
 * ever. Nothing is claimed by a process whose lease has lapsed, and nobody takes the owner over while a claim is being
 * written: the lease's row is held. An offer that has lapsed meanwhile ends here.
 */
export async function claimDue(
  sql: Database,
  { organizationId, signerId, claimId, claimMs, wanted }: ClaimRequest,
): Promise<readonly ClaimedRow[]> {
  const rows = await sql<ClaimedRow[]>`
    with wanted as (
      select * from unnest(
        ${wanted.map((one) => one.endpointId)}::bigint[], ${wanted.map((one) => one.count)}::int[]
      ) as w (endpoint_id, most)
    ), lease as materialized (
      select from webhook_owners
      where organization_id = ${organizationId} and leased_by = ${signerId} and leased_until > clock_timestamp()
      for share
    ), due as materialized (
      select d.delivery_id, d.due_at, d.lapses_at <= now() as has_lapsed
      from lease cross join wanted w cross join lateral (
        select delivery_id, lapses_at, due_at from webhook_deliveries
        where endpoint_id = w.endpoint_id and status = 'pending' and due_at <= now()
          and (claimed_by is null or claimed_until <= now())
        order by due_at, delivery_id limit w.most for no key update skip locked
      ) d
    ), lapsed as (
      update webhook_deliveries d set
        status = case when d.delivered_at is null then 'lapsed' else 'delivered' end,
        due_at = null, claimed_by = null, manual_of = null
      from due where d.delivery_id = due.delivery_id and due.has_lapsed
    )
    update webhook_deliveries d set
      claimed_by = ${claimId}, attempts = d.attempts + 1,
      claimed_until = now() + ${claimMs}::float8 * interval '1 millisecond'
    from due where d.delivery_id = due.delivery_id and due.has_lapsed is not true
    returning d.delivery_id, d.endpoint_id, d.event_type, d.body, d.attempts, d.manual_of,
      (extract(epoch from d.lapses_at - clock_timestamp()) * 1000)::float8 as lapses_in_ms, due.due_at as was_due_at`;
  return rows.toSorted((a, b) => a.was_due_at.getTime() - b.was_due_at.getTime() || a.delivery_id - b.delivery_id);
}

/** Claimed and not sent: they are due again, and the attempt that was not made is not counted. */
export async function giveBack(
  sql: Database,
  { claimId, deliveryIds }: { readonly claimId: string; readonly deliveryIds: readonly number[] },
): Promise<void> {
  if (deliveryIds.length === 0) return;
  await sql`
    update webhook_deliveries set claimed_by = null, attempts = attempts - 1
    where delivery_id = any(${[...deliveryIds]}::bigint[]) and claimed_by = ${claimId} and status = 'pending'`;
}

/** What was claimed by a statement whose answer was lost: it is due again. `known` is what the sender has. */
export async function freeUnknownClaims(
  sql: Database,
  { organizationId, claimId }: Claimant,
  known: readonly number[],
): Promise<void> {
  await sql`
    update webhook_deliveries set claimed_by = null
    where status = 'pending' and organization_id = ${organizationId} and claimed_by = ${claimId}
      and delivery_id <> all(${[...known]}::bigint[])`;
}
