/** What became of attempts: many at once, because each round trip and each commit costs as much as a delivery. */

import type { AttemptError } from "../../bus/messages/webhook-deliveries.ts";
import type { DISABLED_REASONS } from "../../bus/messages/webhook-endpoints.ts";
import type { Database, Queryable, Transaction } from "../../db/pool.ts";
import { OUTCOMES, outcomeArrays, PARAMETER_BEHIND_OUTCOMES } from "./outcome-columns.ts";

export interface OutcomeRow {
  readonly delivery_id: number;
  /** When the attempt began, in microseconds since the epoch: no two attempts of one delivery share it. */
  readonly attempt_id: number;
  /** Which attempt of the delivery it was when it began, the first one being 1. */
  readonly attempt: number;
  /** How often one more had been asked for by then. */
  readonly asked: number;
  /** Milliseconds until the next attempt; null after a success, and when there is none. */
  readonly retry_in_ms: number | null;
  readonly address: string | null;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly total_ms: number | null;
  readonly http_status: number | null;
  /** Null exactly for a success. */
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

/** The delivery still waits for this very attempt. */
const IS_AWAITED = "(d.status = 'pending' and d.attempts = i.attempt - 1)";
const IS_DELIVERED = `(i.error is null and (d.delivered_at is null or ${IS_AWAITED}))`;
/** How the delivery stands without what was asked for, and when it is due by the schedule. */
const STANDING = "coalesce(d.manual_of, d.status)";
const PLANNED = `case when d.manual_of is null then d.due_at
  else coalesce(d.planned_at, now() + i.retry_in_ms * interval '1 millisecond', now()) end`;
/** An attempt that somebody asked for beside the schedule changes nothing when it fails. */
const IS_BY_PLAN = `(${IS_AWAITED} and i.error is not null and not i.is_manual)`;
/** An offer that expires before its next attempt has lapsed. */
const IS_REPEATED = `(i.retry_in_ms is not null and d.delivered_at is null
  and (d.lapses_at is null or d.lapses_at > now() + i.retry_in_ms * interval '1 millisecond'))`;
const STANDS_THEN = `case
  when ${IS_DELIVERED} then 'delivered'
  when ${IS_BY_PLAN} then case
    when ${IS_REPEATED} then 'pending'
    when d.delivered_at is not null then 'delivered'
    when i.retry_in_ms is not null then 'lapsed'
    else 'failed' end
  when ${IS_AWAITED} and ${STANDING} = 'unsent' then 'failed'
  else ${STANDING} end`;
const DUE_THEN = `case
  when ${IS_DELIVERED} then null
  when ${IS_BY_PLAN} then case when ${IS_REPEATED} then now() + i.retry_in_ms * interval '1 millisecond' end
  when ${STANDING} = 'pending' then ${PLANNED} end`;
/** One more attempt was asked for while this one was under way. */
const IS_ASKED_STILL = `(d.manual_of is not null and (d.asked > i.asked or not i.is_manual
  or not (${IS_AWAITED} or ${IS_DELIVERED})))`;

/** A process that stood still, and whose owner another has taken since, knows less of the owner's endpoints than that one. */
const IS_LAST_HOLDER = `exists (select from webhook_owners o
  where o.organization_id = e.organization_id and o.leased_by = i.signer_id)`;

const BREAKERS = `breakers as (
  update webhook_endpoints e set
    consecutive_failures = i.consecutive_failures,
    times_opened = i.times_opened,
    open_until = i.open_until,
    failing_since = i.failing_since,
    failures_since_success = i.failures_since_success,
    last_success_at = case when i.has_succeeded then now() else e.last_success_at end,
    last_failure_at = case when i.has_failed then now() else e.last_failure_at end
  from jsonb_to_recordset(${PARAMETER_BEHIND_OUTCOMES}::text::jsonb) as i (
    endpoint_id bigint, generation integer, consecutive_failures integer, times_opened integer,
    open_until timestamptz, failing_since timestamptz, failures_since_success integer, has_succeeded boolean,
    has_failed boolean, signer_id uuid)
  where e.endpoint_id = i.endpoint_id and e.generation = i.generation and ${IS_LAST_HOLDER}
  returning e.endpoint_id
),`;

const statement = (before: string, first: string): string => `
with ${before} counted as (
  update webhook_deliveries d set
    attempts = d.attempts + 1,
    manual_attempts = d.manual_attempts + i.is_manual::int,
    status = case when ${IS_ASKED_STILL} then 'pending' else ${STANDS_THEN} end,
    due_at = case when ${IS_ASKED_STILL} then d.due_at else ${DUE_THEN} end,
    manual_of = case when ${IS_ASKED_STILL} then ${STANDS_THEN} end,
    planned_at = case when ${IS_ASKED_STILL} then ${DUE_THEN} end,
    delivered_at = case when i.error is null then coalesce(d.delivered_at, now()) else d.delivered_at end
  from ${first} ${OUTCOMES}
  where d.delivery_id = i.delivery_id
  returning i.*
)
insert into webhook_attempts (delivery_id, attempt_id, started_at, address, dns_ms, connect_ms, tls_ms, first_byte_ms,
  total_ms, status, error, response_body, is_truncated, is_manual)
select delivery_id, attempt_id, to_timestamp(attempt_id / 1e6::float8), address, dns_ms, connect_ms, tls_ms,
  first_byte_ms, total_ms, http_status, error, response_body, is_truncated, is_manual
from counted`;

/** Texts of their own, because the driver would put one together from its parts each time. */
const OUTCOMES_ONLY = statement("", "");
const WITH_BREAKERS = statement(BREAKERS, "(select count(*) from breakers) as written,");

/**
 * Writes attempts, what follows from them, and the breakers of their endpoints, in one statement; those of owners that
 * another process has held since stay as they are. Every attempt is counted.
 * A failure moves its delivery only when that still waits for this very attempt, so whoever held the owner before changes
 * nothing that a later holder has decided; a success counts in any case, because the target has it. One more
 * attempt that was asked for while this one was under way is made after it, whatever came of this one.
 *
 * The key of an attempt is made before it is written: the same outcomes written once more are refused as a whole
 * (`isWrittenBefore`). The endpoints come first, then the deliveries in the order of their ids, as with whoever deletes or
 * disables an endpoint: so none of them wait for each other.
 */
export async function writeOutcomes(
  sql: Queryable,
  {
    outcomes,
    endpoints,
    signerId = null,
  }: {
    readonly outcomes: readonly OutcomeRow[];
    readonly endpoints: readonly EndpointOutcomeRow[];
    /** As whom the owners are held; without it no endpoint's row is written. */
    readonly signerId?: string | null;
  },
): Promise<void> {
  const arrays = outcomeArrays(outcomes.toSorted((a, b) => a.delivery_id - b.delivery_id));
  if (endpoints.length === 0) await sql.unsafe(OUTCOMES_ONLY, arrays, { prepare: true });
  else {
    const breakers = JSON.stringify(endpoints.map((row) => endpointAsJson(row, signerId)));
    await sql.unsafe(WITH_BREAKERS, [...arrays, breakers], { prepare: true });
  }
}

/** Whether PostgreSQL refused outcomes because they stand there already: the answer to the first time was lost. */
export function isWrittenBefore(error: unknown): boolean {
  const { code, constraint_name: constraint } = error as { code?: unknown; constraint_name?: unknown };
  return code === "23505" && constraint === "webhook_attempts_pkey";
}

export interface DisabledRow {
  readonly endpoint_id: number;
  readonly organization_id: number;
  readonly url: string;
  readonly disabled_reason: (typeof DISABLED_REASONS)[number];
}

/**
 * Holds and disables those that were not disabled before; what waits for them will not be sent. That one has failed for
 * too long is for the owner's last holder to say; that it is gone, for whoever was told so.
 */
export async function disableEndpoints(
  sql: Transaction,
  endpoints: readonly EndpointOutcomeRow[],
  signerId: string | null = null,
): Promise<readonly DisabledRow[]> {
  const ids = endpoints.map((row) => row.endpoint_id);
  // Held as by one who deletes: no delivery to them is being written meanwhile.
  await sql`
    select from webhook_endpoints where endpoint_id = any(${ids}::bigint[]) order by endpoint_id for update`;
  const disabled = await sql<DisabledRow[]>`
    update webhook_endpoints e set status = 'disabled', disabled_reason = i.disabled_reason
    from jsonb_to_recordset(${sql.json(endpoints.map((row) => endpointAsJson(row, signerId)))}) as i (
      endpoint_id bigint, generation integer, disabled_reason text, signer_id uuid)
    where e.endpoint_id = i.endpoint_id and e.generation = i.generation and e.status <> 'disabled'
      and (i.disabled_reason = 'gone' or ${sql.unsafe(IS_LAST_HOLDER)})
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
    with waiting as materialized (
      select delivery_id from webhook_deliveries
      where endpoint_id = any(${[...endpointIds]}::bigint[]) and status = 'pending'
      order by delivery_id for no key update
    )
    update webhook_deliveries set status = case when delivered_at is null then 'failed' else 'delivered' end,
      due_at = null, manual_of = null
    where delivery_id in (select delivery_id from waiting)`;
}

const endpointAsJson = (row: EndpointOutcomeRow, signerId: string | null) => ({
  ...row,
  signer_id: signerId,
  open_until: row.open_until?.toISOString() ?? null,
  failing_since: row.failing_since?.toISOString() ?? null,
});
