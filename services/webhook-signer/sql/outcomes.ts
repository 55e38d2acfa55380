/** What became of attempts: many at once, because each round trip and each commit costs as much as a delivery. */
import type { AttemptError, DISABLED_REASONS } from "../../bus/messages/webhooks.ts";
import type { Database, Queryable, Transaction } from "../../db/pool.ts";

export interface OutcomeRow {
  readonly delivery_id: number;
  /** Whose claim the attempt was made under. */
  readonly claim_id: string;
  readonly status: "delivered" | "failed" | "pending";
  /** For `pending`: milliseconds until the next attempt. */
  readonly retry_in_ms: number | null;
  readonly started_at: Date;
  readonly address: string | null;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number | null;
  readonly http_status: number | null;
  readonly error: AttemptError | null;
  readonly response_body: string;
  readonly is_truncated: boolean;
  readonly is_manual: boolean;
}

export interface EndpointOutcomeRow {
  readonly endpoint_id: number;
  /** What was known of the breaker; an endpoint that the owner has started anew since is left as it is. */
  readonly generation: number;
  readonly consecutive_failures: number;
  readonly times_opened: number;
  readonly open_until: Date | null;
  readonly failing_since: Date | null;
  readonly failures_since_success: number;
  readonly has_succeeded: boolean;
  readonly has_failed: boolean;
  /** Set when the endpoint is to be disabled now; such rows are for `disableEndpoints`. */
  readonly disabled_reason: (typeof DISABLED_REASONS)[number] | null;
}

/**
 * Writes attempts, what follows from them, and the breakers of their endpoints, in one statement. A delivery that is no
 * longer the claimant's, or no longer pending, keeps its state; a success counts all the same, because the target has it.
 * The endpoints come first: whoever deletes one holds it first, too, so the two never wait for each other.
 */
export async function writeOutcomes(
  sql: Queryable,
  {
    outcomes,
    endpoints,
  }: {
    readonly outcomes: readonly OutcomeRow[];
    readonly endpoints: readonly EndpointOutcomeRow[];
  },
): Promise<void> {
  await sql`
    with breakers as (
      update webhook_endpoints e set
        consecutive_failures = i.consecutive_failures,
        times_opened = i.times_opened,
        open_until = i.open_until,
        failing_since = i.failing_since,
        failures_since_success = i.failures_since_success,
        last_success_at = case when i.has_succeeded then now() else e.last_success_at end,
        last_failure_at = case when i.has_failed then now() else e.last_failure_at end
      from jsonb_to_recordset(${sql.json(endpoints.map(endpointAsJson))}) as i (
        endpoint_id bigint, generation integer, consecutive_failures integer, times_opened integer,
        open_until timestamptz, failing_since timestamptz, failures_since_success integer, has_succeeded boolean,
        has_failed boolean)
      where e.endpoint_id = i.endpoint_id and e.generation = i.generation
      returning e.endpoint_id
    ), input as materialized (
      select i.*
      from (select count(*) from breakers) as written, jsonb_to_recordset(${sql.json(outcomes.map(outcomeAsJson))}) as i (
        delivery_id bigint, claim_id uuid, status text, retry_in_ms float8, started_at timestamptz, address text, dns_ms real,
        connect_ms real, tls_ms real, first_byte_ms real, total_ms real, http_status smallint, error text,
        response_body text, is_truncated boolean, is_manual boolean)
    ), attempted as (
      insert into webhook_attempts (delivery_id, started_at, address, dns_ms, connect_ms, tls_ms, first_byte_ms,
        total_ms, status, error, response_body, is_truncated, is_manual)
      select delivery_id, started_at, address, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, http_status, error,
        response_body, is_truncated, is_manual
      from input
    ), next as (
      -- An attempt that somebody asked for beside the schedule changes nothing when it fails. An offer that expires before
      -- its next attempt has lapsed.
      select d.delivery_id, i.claim_id, i.retry_in_ms,
        case
          when i.status = 'delivered' or d.delivered_at is not null then 'delivered'
          when d.manual_of in ('failed', 'unsent') then 'failed'
          when d.manual_of = 'lapsed' then 'lapsed'
          when i.status = 'pending' and d.lapses_at <= now() + i.retry_in_ms * interval '1 millisecond' then 'lapsed'
          else i.status
        end as status
      from input i join webhook_deliveries d using (delivery_id)
      where (d.claimed_by = i.claim_id and d.status = 'pending') or (i.status = 'delivered' and d.status <> 'delivered')
    )
    update webhook_deliveries d set
      status = next.status,
      claimed_by = null,
      manual_of = null,
      due_at = case when next.status = 'pending' then now() + next.retry_in_ms * interval '1 millisecond' end,
      delivered_at = case when next.status = 'delivered' then coalesce(d.delivered_at, now()) else d.delivered_at end
    from next
    where d.delivery_id = next.delivery_id
      and ((d.claimed_by = next.claim_id and d.status = 'pending') or (next.status = 'delivered' and d.status <> 'delivered'))`;
}

export interface DisabledRow {
  readonly endpoint_id: number;
  readonly organization_id: number;
  readonly url: string;
  readonly disabled_reason: (typeof DISABLED_REASONS)[number];
}

/** Holds and disables those that were not disabled before; what waits for them will not be sent. */
export async function disableEndpoints(
  sql: Transaction,
  endpoints: readonly EndpointOutcomeRow[],
): Promise<readonly DisabledRow[]> {
  const ids = endpoints.map((row) => row.endpoint_id);
  // Held as by one who deletes: no delivery to them is being written meanwhile.
  await sql`
    select from webhook_endpoints where endpoint_id = any(${ids}::bigint[]) order by endpoint_id for update`;
  const disabled = await sql<DisabledRow[]>`
    update webhook_endpoints e set status = 'disabled', disabled_reason = i.disabled_reason
    from jsonb_to_recordset(${sql.json(endpoints.map(endpointAsJson))}) as i (
      endpoint_id bigint, generation integer, disabled_reason text)
    where e.endpoint_id = i.endpoint_id and e.generation = i.generation and e.status <> 'disabled'
    returning e.endpoint_id, e.organization_id, e.url, e.disabled_reason`;
  await failPending(
    sql,
    disabled.map((row) => row.endpoint_id),
  );
  return disabled;
}

/** What waits for these endpoints never will be sent; what had been delivered before, and was to be sent again, was delivered. */
export async function failPending(sql: Transaction | Database, endpointIds: readonly number[]): Promise<void> {
  if (endpointIds.length === 0) return;
  await sql`
    update webhook_deliveries set status = case when delivered_at is null then 'failed' else 'delivered' end,
      due_at = null, claimed_by = null, manual_of = null
    where endpoint_id = any(${[...endpointIds]}::bigint[]) and status = 'pending'`;
}

const outcomeAsJson = (row: OutcomeRow) => ({ ...row, started_at: row.started_at.toISOString() });

const endpointAsJson = (row: EndpointOutcomeRow) => ({
  ...row,
  open_until: row.open_until?.toISOString() ?? null,
  failing_since: row.failing_since?.toISOString() ?? null,
});
