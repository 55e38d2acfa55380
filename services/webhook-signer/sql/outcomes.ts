/**
 * Stores what the machine has decided about deliveries and endpoints after attempts: many at once, because each round trip
 * and each commit costs as much as a delivery.
 */
import type { DisabledReason } from "../../../machines/webhook-breaker.ts";
import { type DeliveryEvent, type DeliveryStep, nextDelivery } from "../../../machines/webhook-delivery.ts";
import type { Transaction } from "../../db/pool.ts";
import { recordRoboticsAction, SYSTEM_ACTOR } from "../../db/robotics-audit-log.ts";
import { type AttemptRow, deliveryStep, endPending, type StepRow, stepColumns } from "./deliveries.ts";
import type { DueEndpointRow } from "./owners.ts";

/** One attempt: what its record has, and what the machine needs to decide. */
export interface OutcomeRow extends Omit<AttemptRow, "started_at" | "status"> {
  readonly delivery_id: number;
  /** When the attempt began, in microseconds since the epoch: no two attempts of one delivery share it. */
  readonly attempt_id: number;
  /** Which attempt of the delivery it was when it began, the first one being 1. */
  readonly attempt: number;
  /** How many extra attempts had been requested by then. */
  readonly asked: number;
  /** Milliseconds until the next attempt by the schedule; null after a success, and when there is none. */
  readonly retry_in_ms: number | null;
  readonly http_status: number | null;
}

/** An attempt and what the machine has made of it. */
export interface Decided {
  readonly outcome: OutcomeRow;
  readonly from: DeliveryStep;
  readonly to: DeliveryStep;
}

/** The machine's decision after an attempt of a delivery in the state `from`. */
export function decide(outcome: OutcomeRow, from: DeliveryStep, atMs: number): Decided {
  const attempt = { number: outcome.attempt, requests: outcome.asked, isManual: outcome.is_manual };
  const event: DeliveryEvent =
    outcome.error === null
      ? { type: "SUCCEED", atMs, attempt }
      : { type: "FAIL", atMs, attempt, retryInMs: outcome.retry_in_ms };
  const to = nextDelivery(from, event);
  if (to === undefined) throw new Error(`A delivery that is ${from.value} took no attempt.`);
  return { outcome, from, to };
}

/** `generation` is the one that the process knew. An endpoint with a newer generation keeps its breaker. */
export interface EndpointOutcomeRow extends Omit<DueEndpointRow, "url" | "mode"> {
  readonly has_succeeded: boolean;
  readonly has_failed: boolean;
  /** Set when the endpoint is to be disabled now; such rows are for `disableEndpoints`. */
  readonly disabled_reason: DisabledReason | null;
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly textOf: (decided: Decided) => string;
}

/** The row's status: a requested delivery is pending, like one that is due by the schedule. */
const statusOf = ({ value }: DeliveryStep): string => (value === "requested" ? "pending" : value);

/**
 * One PostgreSQL array for each column. The arrays are written as text here: the driver would make a closure and search
 * for quotes for every value, which costs more than the rest of the write. A null value is the word `null`.
 */
const COLUMNS: readonly Column[] = [
  { name: "delivery_id", type: "bigint", textOf: ({ outcome }) => String(outcome.delivery_id) },
  { name: "from_status", type: "text", textOf: ({ from }) => statusOf(from) },
  { name: "from_attempts", type: "integer", textOf: ({ from }) => String(from.context.attempts) },
  { name: "from_asked", type: "integer", textOf: ({ from }) => String(from.context.requests) },
  { name: "from_manual_of", type: "text", textOf: ({ from }) => String(from.context.before) },
  { name: "to_status", type: "text", textOf: ({ to }) => statusOf(to) },
  { name: "to_attempts", type: "integer", textOf: ({ to }) => String(to.context.attempts) },
  { name: "to_manual_attempts", type: "integer", textOf: ({ to }) => String(to.context.manualAttempts) },
  { name: "to_manual_of", type: "text", textOf: ({ to }) => String(to.context.before) },
  { name: "due_at_ms", type: "float8", textOf: ({ to }) => String(to.context.dueAtMs) },
  { name: "planned_at_ms", type: "float8", textOf: ({ to }) => String(to.context.plannedAtMs) },
  { name: "delivered_at_ms", type: "float8", textOf: ({ to }) => String(to.context.deliveredAtMs) },
  { name: "attempt_id", type: "bigint", textOf: ({ outcome }) => String(outcome.attempt_id) },
  { name: "address", type: "text", textOf: ({ outcome }) => quoted(outcome.address) },
  { name: "dns_ms", type: "real", textOf: ({ outcome }) => String(outcome.dns_ms) },
  { name: "connect_ms", type: "real", textOf: ({ outcome }) => String(outcome.connect_ms) },
  { name: "tls_ms", type: "real", textOf: ({ outcome }) => String(outcome.tls_ms) },
  { name: "first_byte_ms", type: "real", textOf: ({ outcome }) => String(outcome.first_byte_ms) },
  { name: "total_ms", type: "real", textOf: ({ outcome }) => String(outcome.total_ms) },
  { name: "http_status", type: "smallint", textOf: ({ outcome }) => String(outcome.http_status) },
  { name: "error", type: "text", textOf: ({ outcome }) => quoted(outcome.error) },
  { name: "response_body", type: "text", textOf: ({ outcome }) => quoted(outcome.response_body) },
  { name: "is_truncated", type: "boolean", textOf: ({ outcome }) => String(outcome.is_truncated) },
  { name: "is_manual", type: "boolean", textOf: ({ outcome }) => String(outcome.is_manual) },
];

/** Quotes the text, so that it is never read as null. Escapes quotes and backslashes. */
function quoted(text: string | null): string {
  if (text === null) return "null";
  return text === "" ? '""' : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** One constant text, because the driver would build it from its parts for each call. */
const STORE = `
with counted as (
  update webhook_deliveries d set
    status = i.to_status,
    attempts = i.to_attempts,
    manual_attempts = i.to_manual_attempts,
    manual_of = i.to_manual_of,
    due_at = to_timestamp(i.due_at_ms / 1e3::float8),
    planned_at = to_timestamp(i.planned_at_ms / 1e3::float8),
    delivered_at = to_timestamp(i.delivered_at_ms / 1e3::float8),
    ended_at = case when i.due_at_ms is null then now() end
  from unnest(${COLUMNS.map(({ type }, at) => `$${at + 1}::${type}[]`).join(", ")})
    as i (${COLUMNS.map(({ name }) => name).join(", ")})
  where d.delivery_id = i.delivery_id
    -- The delivery is as the machine received it: no other holder, request, end or expiry came in between.
    and d.status = i.from_status and d.attempts = i.from_attempts and d.asked = i.from_asked
    and d.manual_of is not distinct from i.from_manual_of
  returning i.*
)
insert into webhook_attempts (delivery_id, attempt_id, started_at, address, dns_ms, connect_ms, tls_ms, first_byte_ms,
  total_ms, status, error, response_body, is_truncated, is_manual)
select delivery_id, attempt_id, to_timestamp(attempt_id / 1e6::float8), address, dns_ms, connect_ms, tls_ms,
  first_byte_ms, total_ms, http_status, error, response_body, is_truncated, is_manual
from counted`;

/** Returns how many of the deliveries were still as in `from`; the others, and the records of their attempts, are left out. */
async function store(sql: Transaction, decided: readonly Decided[]): Promise<number> {
  const ordered = decided.toSorted((a, b) => a.outcome.delivery_id - b.outcome.delivery_id);
  const arrays = COLUMNS.map(({ textOf }) => `{${ordered.map(textOf).join(",")}}`);
  return (await sql.unsafe(STORE, arrays, { prepare: true })).count;
}

/** What is written together. The endpoints come first, then the deliveries by id, as in every transaction that locks both. */
interface EndpointOutcomes {
  readonly endpoints: readonly EndpointOutcomeRow[];
  /** The id under which this process holds the owners; without it no endpoint's row is written. */
  readonly signerId?: string | null;
}

/** Deliveries have changed since the machine decided. Nothing is written; `writeOutcomes` decides again. */
export class OvertakenError extends Error {
  constructor() {
    super("Deliveries have changed since their attempts began.");
    this.name = "OvertakenError";
  }
}

/** Writes what was decided when the attempts ended. Throws `OvertakenError`, after which the transaction must not commit. */
export async function writeDecided(
  sql: Transaction,
  { decided, ...endpoints }: EndpointOutcomes & { readonly decided: readonly Decided[] },
): Promise<void> {
  await writeBreakers(sql, endpoints);
  if (decided.length > 0 && (await store(sql, decided)) < decided.length) throw new OvertakenError();
}

/**
 * Locks the deliveries, asks the machine again and writes what it decides. Every attempt is counted. A delivery that
 * has been deleted is left out.
 *
 * The key of an attempt is made before the write, so PostgreSQL refuses the same outcomes as a whole the second time
 * (`isWrittenBefore`).
 */
export async function writeOutcomes(
  sql: Transaction,
  { outcomes, ...endpoints }: EndpointOutcomes & { readonly outcomes: readonly OutcomeRow[] },
): Promise<void> {
  await writeBreakers(sql, endpoints);
  const ids = outcomes.map((outcome) => outcome.delivery_id);
  const rows = await sql<(StepRow & { readonly delivery_id: number; readonly now_ms: number })[]>`
    select delivery_id, ${stepColumns(sql)}, (extract(epoch from now()) * 1000)::float8 as now_ms
    from webhook_deliveries where delivery_id = any(${ids}::bigint[]) order by delivery_id for no key update`;
  const byId = new Map(rows.map((row) => [row.delivery_id, row]));
  const decided = outcomes.flatMap((outcome) => {
    const row = byId.get(outcome.delivery_id);
    return row === undefined ? [] : [decide(outcome, deliveryStep(row), row.now_ms)];
  });
  if (decided.length > 0) await store(sql, decided);
}

/** Whether PostgreSQL refused outcomes because it has them already: the answer to the first time was lost. */
export function isWrittenBefore(error: unknown): boolean {
  const { code, constraint_name: constraint } = error as { code?: unknown; constraint_name?: unknown };
  return code === "23505" && constraint === "webhook_attempts_pkey";
}

/** Whether this process held the owner last. A stalled process has older facts than the process that took over. */
const IS_LAST_HOLDER = `exists (select from webhook_owners o
  where o.organization_id = e.organization_id and o.leased_by = i.signer_id)`;

/** Writes the breakers. Leaves those of owners that another process has taken since. */
async function writeBreakers(sql: Transaction, { endpoints, signerId = null }: EndpointOutcomes): Promise<void> {
  if (endpoints.length === 0) return;
  await sql`
    update webhook_endpoints e set
      consecutive_failures = i.consecutive_failures,
      times_opened = i.times_opened,
      open_until = i.open_until,
      failing_since = i.failing_since,
      failures_since_success = i.failures_since_success,
      last_success_at = case when i.has_succeeded then now() else e.last_success_at end,
      last_failure_at = case when i.has_failed then now() else e.last_failure_at end
    from jsonb_to_recordset(${sql.json(endpoints.map((row) => endpointAsJson(row, signerId)))}) as i (
      endpoint_id bigint, generation integer, consecutive_failures integer, times_opened integer,
      open_until timestamptz, failing_since timestamptz, failures_since_success integer, has_succeeded boolean,
      has_failed boolean, signer_id uuid)
    where e.endpoint_id = i.endpoint_id and e.generation = i.generation and ${sql.unsafe(IS_LAST_HOLDER)}`;
}

interface DisablingRow {
  readonly endpoint_id: number;
  readonly generation: number;
  readonly disabled_reason: DisabledReason;
}

export interface DisabledRow {
  readonly endpoint_id: number;
  readonly organization_id: number;
  readonly url: string;
  readonly disabled_reason: DisabledReason;
}

/**
 * Locks and disables the endpoints that are not disabled yet, ends the deliveries that wait for them, and writes the
 * audit log. Only the owner's last holder disables an endpoint because it fails. Any process that has received a 410
 * disables it.
 */
export async function disableEndpoints(
  sql: Transaction,
  endpoints: readonly DisablingRow[],
  signerId: string | null = null,
): Promise<readonly DisabledRow[]> {
  if (endpoints.length === 0) return [];
  const ids = endpoints.map((row) => row.endpoint_id);
  // The same lock as for a deletion: no delivery to these endpoints is being written meanwhile.
  await sql`
    select from webhook_endpoints where endpoint_id = any(${ids}::bigint[]) order by endpoint_id for update`;
  const disabled = await sql<DisabledRow[]>`
    update webhook_endpoints e set status = 'disabled', disabled_reason = i.disabled_reason
    from jsonb_to_recordset(${sql.json(endpoints.map((row) => ({ ...row, signer_id: signerId })))}) as i (
      endpoint_id bigint, generation integer, disabled_reason text, signer_id uuid)
    where e.endpoint_id = i.endpoint_id and e.generation = i.generation and e.status <> 'disabled'
      and (i.disabled_reason = 'gone' or ${sql.unsafe(IS_LAST_HOLDER)})
    returning e.endpoint_id, e.organization_id, e.url, e.disabled_reason`;
  await endPending(
    sql,
    disabled.map((row) => row.endpoint_id),
  );
  for (const { endpoint_id: id, organization_id: organizationId, url, disabled_reason: reason } of disabled) {
    const subject = { kind: "webhook_endpoint", id } as const;
    const action = "webhook_endpoint_disabled";
    await recordRoboticsAction(sql, { organizationId, actor: SYSTEM_ACTOR, action, subject, data: { url, reason } });
  }
  return disabled;
}

const endpointAsJson = (row: EndpointOutcomeRow, signerId: string | null) => ({
  ...row,
  signer_id: signerId,
  open_until: row.open_until?.toISOString() ?? null,
  failing_since: row.failing_since?.toISOString() ?? null,
});
