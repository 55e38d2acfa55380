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
}

/** The owner's endpoints that have something due and may be sent to, whatever their breaker says. */
export async function listDueEndpoints(sql: Database, organizationId: number): Promise<readonly DueEndpointRow[]> {
  return await sql<DueEndpointRow[]>`
    select e.endpoint_id, e.url, c.mode, e.generation, e.consecutive_failures, e.times_opened, e.open_until,
      e.failing_since, e.failures_since_success
    from webhook_endpoints e join robotics_consumers c using (consumer_id)
    where e.organization_id = ${organizationId} and e.deleted_at is null and e.status = 'active'
      and exists (select from webhook_deliveries d
        where d.endpoint_id = e.endpoint_id and d.status = 'pending' and d.due_at <= now())
    order by e.endpoint_id`;
}

export interface ClaimedRow {
  readonly delivery_id: number;
  readonly endpoint_id: number;
  readonly event_type: string;
  readonly body: string;
  /** This one included. */
  readonly attempts: number;
  readonly is_manual: boolean;
  readonly lapses_at: Date | null;
  /** When it became due. */
  readonly was_due_at: Date;
}

export interface ClaimRequest {
  readonly organizationId: number;
  readonly signerId: string;
  /** How long nobody else looks at them. */
  readonly claimMs: number;
  /** How many of which endpoint. */
  readonly wanted: readonly { readonly endpointId: number; readonly count: number }[];
}

/**
 * Claims due deliveries, the longest due first, and counts the attempt: a delivery that kills its process is not tried for
 * ever. Nothing is claimed by a process whose lease has lapsed. An offer that has lapsed meanwhile ends here.
 */
export async function claimDue(
  sql: Database,
  { organizationId, signerId, claimMs, wanted }: ClaimRequest,
): Promise<readonly ClaimedRow[]> {
  return await sql<ClaimedRow[]>`
    with wanted as (
      select * from unnest(
        ${wanted.map((one) => one.endpointId)}::bigint[], ${wanted.map((one) => one.count)}::int[]
      ) as w (endpoint_id, most)
    ), due as (
      select d.delivery_id, d.due_at, d.lapses_at <= now() as has_lapsed
      from wanted w cross join lateral (
        select delivery_id, lapses_at, due_at from webhook_deliveries
        where endpoint_id = w.endpoint_id and status = 'pending' and due_at <= now()
        order by due_at, delivery_id limit w.most for no key update skip locked
      ) d
      where exists (select from webhook_owners
        where organization_id = ${organizationId} and leased_by = ${signerId} and leased_until > clock_timestamp())
    ), lapsed as (
      update webhook_deliveries d set status = 'lapsed', due_at = null, claimed_by = null, is_manual = false
      from due where d.delivery_id = due.delivery_id and due.has_lapsed
    )
    update webhook_deliveries d set
      claimed_by = ${signerId}, attempts = d.attempts + 1,
      due_at = now() + ${claimMs}::float8 * interval '1 millisecond'
    from due where d.delivery_id = due.delivery_id and due.has_lapsed is not true
    returning d.delivery_id, d.endpoint_id, d.event_type, d.body, d.attempts, d.is_manual, d.lapses_at,
      due.due_at as was_due_at`;
}

/** Claimed and not sent: they are due again, and the attempt that was not made is not counted. */
export async function giveBack(
  sql: Database,
  { signerId, deliveryIds }: { readonly signerId: string; readonly deliveryIds: readonly number[] },
): Promise<void> {
  if (deliveryIds.length === 0) return;
  await sql`
    update webhook_deliveries set claimed_by = null, due_at = now(), attempts = attempts - 1
    where delivery_id = any(${[...deliveryIds]}::bigint[]) and claimed_by = ${signerId} and status = 'pending'`;
}

/** When the owner's next delivery is due; undefined when none waits. Milliseconds from now, not negative. */
export async function nextDueInMs(sql: Database, organizationId: number): Promise<number | undefined> {
  const [row] = await sql<[{ due_in_ms: number | null }]>`
    select greatest(0, extract(epoch from min(due_at) - clock_timestamp()) * 1000)::float8 as due_in_ms
    from webhook_deliveries where organization_id = ${organizationId} and status = 'pending'`;
  return row.due_in_ms ?? undefined;
}
