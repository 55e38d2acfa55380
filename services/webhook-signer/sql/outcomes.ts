/** What became of attempts: many at once, because each round trip and each commit costs as much as a delivery. */

import type { AttemptError } from "../../bus/messages/webhooks.ts";
import type { Transaction } from "../../db/pool.ts";

export interface OutcomeRow {
  readonly delivery_id: number;
  readonly status: "delivered" | "failed" | "pending" | "lapsed";
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

/**
 * Writes attempts and what follows from them. A delivery that is no longer this process's, or no longer pending, keeps its
 * state; a success counts all the same, because the target has it.
 */
export async function writeOutcomes(
  sql: Transaction,
  { signerId, outcomes }: { readonly signerId: string; readonly outcomes: readonly OutcomeRow[] },
): Promise<void> {
  if (outcomes.length === 0) return;
  const rows = sql.json(outcomes.map((row) => ({ ...row, started_at: row.started_at.toISOString() })));
  await sql`
    with input as (
      select * from jsonb_to_recordset(${rows}) as r (
        delivery_id bigint, status text, retry_in_ms float8, started_at timestamptz, address text, dns_ms real,
        connect_ms real, tls_ms real, first_byte_ms real, total_ms real, http_status smallint, error text,
        response_body text, is_truncated boolean, is_manual boolean)
    ), attempted as (
      insert into webhook_attempts (delivery_id, started_at, address, dns_ms, connect_ms, tls_ms, first_byte_ms,
        total_ms, status, error, response_body, is_truncated, is_manual)
      select delivery_id, started_at, address, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, http_status, error,
        response_body, is_truncated, is_manual
      from input
    )
    update webhook_deliveries d set
      status = i.status,
      claimed_by = null,
      is_manual = false,
      due_at = case when i.status = 'pending' then now() + i.retry_in_ms * interval '1 millisecond' end,
      delivered_at = case when i.status = 'delivered' then coalesce(d.delivered_at, now()) else d.delivered_at end
    from input i
    where d.delivery_id = i.delivery_id
      and ((d.claimed_by = ${signerId} and d.status = 'pending') or (i.status = 'delivered' and d.status <> 'delivered'))`;
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
  readonly disabled_reason: string | null;
}

/** Writes the breakers; what waits for an endpoint that is disabled now never will be sent. */
export async function writeEndpointOutcomes(
  sql: Transaction,
  endpoints: readonly EndpointOutcomeRow[],
): Promise<readonly number[]> {
  if (endpoints.length === 0) return [];
  const rows = sql.json(
    endpoints.map((row) => ({
      ...row,
      open_until: row.open_until?.toISOString() ?? null,
      failing_since: row.failing_since?.toISOString() ?? null,
    })),
  );
  const disabled = await sql<{ endpoint_id: number }[]>`
    with input as (
      select * from jsonb_to_recordset(${rows}) as r (
        endpoint_id bigint, generation integer, consecutive_failures integer, times_opened integer,
        open_until timestamptz, failing_since timestamptz, failures_since_success integer, has_succeeded boolean,
        has_failed boolean, disabled_reason text)
    ), written as (
      update webhook_endpoints e set
        consecutive_failures = i.consecutive_failures,
        times_opened = i.times_opened,
        open_until = i.open_until,
        failing_since = i.failing_since,
        failures_since_success = i.failures_since_success,
        last_success_at = case when i.has_succeeded then now() else e.last_success_at end,
        last_failure_at = case when i.has_failed then now() else e.last_failure_at end,
        status = case when i.disabled_reason is null then e.status else 'disabled' end,
        disabled_reason = coalesce(i.disabled_reason, e.disabled_reason)
      from input i where e.endpoint_id = i.endpoint_id and e.generation = i.generation
      returning e.endpoint_id, e.status
    )
    select endpoint_id from written where status = 'disabled'`;
  const ids = disabled.map((row) => row.endpoint_id);
  if (ids.length > 0) {
    await sql`
      update webhook_deliveries set status = 'failed', due_at = null, claimed_by = null
      where endpoint_id = any(${ids}::bigint[]) and status = 'pending'`;
  }
  return ids;
}
