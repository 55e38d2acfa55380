/** What is to be sent. Reading it changes nothing: whoever holds the owner's lease remembers what it has in hand. */
import type { Database } from "../../db/pool.ts";
import { endedAs, type StepRow, stepColumns } from "./deliveries.ts";

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

/**
 * The owner's endpoints that may be sent to and have something due, whatever their breaker says, but none of a suspended
 * consumer: what is for it waits as for a paused endpoint; those in `known` in any
 * case, so that one that is missing from the answer is one that must not be sent to any more.
 */
export async function listDueEndpoints(
  sql: Database,
  { organizationId, known }: { readonly organizationId: number; readonly known: readonly number[] },
): Promise<readonly DueEndpointRow[]> {
  return await sql<DueEndpointRow[]>`
    select e.endpoint_id, e.url, c.mode, e.generation, e.consecutive_failures, e.times_opened, e.open_until,
      e.failing_since, e.failures_since_success
    from webhook_endpoints e join robotics_consumers c using (consumer_id)
    where e.organization_id = ${organizationId} and e.deleted_at is null and e.status = 'active'
      and c.status = 'active'
      and (e.endpoint_id = any(${[...known]}::bigint[]) or exists (select from webhook_deliveries d
        where d.endpoint_id = e.endpoint_id and d.status = 'pending' and d.due_at <= now()))
    order by e.endpoint_id`;
}

export interface DueRow extends StepRow {
  readonly delivery_id: number;
  readonly endpoint_id: number;
  readonly body: string;
  readonly due_at_ms: number;
  /** For an offer: milliseconds until it expires, by the clock of PostgreSQL; not above zero for one that has lapsed. */
  readonly lapses_in_ms: number | null;
}

export interface DueRequest {
  /** How many of which endpoint. */
  readonly wanted: readonly { readonly endpointId: number; readonly count: number }[];
  /** Deliveries of these endpoints that are left out. */
  readonly inHand: readonly number[];
}

/** Due deliveries, of each endpoint the longest due first. */
export async function listDue(sql: Database, { wanted, inHand }: DueRequest): Promise<readonly DueRow[]> {
  // Ids are written out here, because the driver would look for quotes in each of them.
  const known = `{${inHand.join(",")}}`;
  return await sql<DueRow[]>`
    select d.*
    from unnest(
      ${wanted.map((one) => one.endpointId)}::bigint[], ${wanted.map((one) => one.count)}::int[]
    ) as w (endpoint_id, most) cross join lateral (
      select delivery_id, endpoint_id, body, ${stepColumns(sql)},
        (extract(epoch from lapses_at - clock_timestamp()) * 1000)::float8 as lapses_in_ms
      from webhook_deliveries
      where endpoint_id = w.endpoint_id and status = 'pending' and due_at <= now()
        and delivery_id not in (select known from unnest(${known}::bigint[]) as known)
      order by due_at, delivery_id limit w.most
    ) d`;
}

/** Offers of these that have expired before they were sent end. */
export async function lapse(sql: Database, deliveryIds: readonly number[]): Promise<void> {
  await sql`
    update webhook_deliveries set ${endedAs(sql, "lapsed")}
    where delivery_id = any(${[...deliveryIds]}::bigint[]) and status = 'pending' and lapses_at <= now()`;
}
