/** Which process sends for which owner, and which deliveries are due. All times are PostgreSQL's: processes' clocks may differ. */
import type { Database } from "../../db/pool.ts";
import { endedAs, type StepRow, stepColumns } from "./deliveries.ts";

/** A process counts as alive for `leaseMs` after it renewed its leases; it renews several times in that time. */
interface LeaseTerms {
  readonly signerId: string;
  readonly leaseMs: number;
}

export interface OwnersRenewed {
  /** The owners whose leases this process still holds. */
  readonly held: readonly number[];
  /** Those of `held` that have deliveries to send now. */
  readonly due: readonly number[];
  /** How many owners all processes hold together. */
  readonly heldByAll: number;
  /** How many processes are alive, this one included. */
  readonly alive: number;
}

/**
 * Whether the owner has a due delivery that may be sent. A delivery that waits for a paused endpoint, a suspended consumer
 * or an open breaker needs no process.
 */
const hasSendable = (sql: Database, organizationId: ReturnType<Database>) => sql`
  exists (select from webhook_endpoints e join robotics_consumers c using (consumer_id)
    where e.organization_id = ${organizationId} and e.deleted_at is null and e.status = 'active' and c.status = 'active'
      and (e.open_until is null or e.open_until <= now())
      and exists (select from webhook_deliveries due
        where due.endpoint_id = e.endpoint_id and due.status = 'pending' and due.due_at <= now()))`;

/**
 * Records that this process is alive, and renews the leases of the owners that it serves. It does not renew a lease that it
 * acquired by a statement whose answer was lost: that lease lapses.
 */
export async function renewOwners(
  sql: Database,
  { signerId, leaseMs, served }: LeaseTerms & { readonly served: readonly number[] },
): Promise<OwnersRenewed> {
  const [row] = await sql<[{ held: number[]; due: number[]; held_by_all: number; alive: number }]>`
    with seen as (
      insert into webhook_signers (signer_id) values (${signerId})
      on conflict (signer_id) do update set seen_at = now()
    ), renewed as (
      update webhook_owners set leased_until = now() + ${leaseMs}::float8 * interval '1 millisecond'
      where leased_by = ${signerId} and leased_until > now() and organization_id = any(${[...served]}::bigint[])
      returning organization_id
    )
    select array(select organization_id from renewed) as held,
      array(select organization_id from renewed
        where ${hasSendable(sql, sql`renewed.organization_id`)}) as due,
      (select count(*)::int from webhook_owners where leased_until > now()) as held_by_all,
      (select count(*)::int from webhook_signers
        where signer_id <> ${signerId} and seen_at > now() - ${leaseMs}::float8 * interval '1 millisecond') + 1 as alive`;
  return { held: row.held, due: row.due, heldByAll: row.held_by_all, alive: row.alive };
}

interface TakeRequest {
  readonly limit: number;
  /** Takes only owners with greater ids; 0 for all. */
  readonly afterId: number;
  /** Owners that are not taken. */
  readonly except: readonly number[];
}

/**
 * Takes up to `limit` owners that have deliveries to send and that no process holds: those with the smallest ids greater
 * than `afterId`, without those in `except`. The recursive query reads one index entry per owner, so a long queue costs no
 * more than a short one. The conditions are in a `case`: PostgreSQL would turn them into a join, which checks all owners
 * and returns them in another order.
 */
export async function takeOwners(
  sql: Database,
  { signerId, leaseMs, limit, afterId, except }: LeaseTerms & TakeRequest,
): Promise<readonly number[]> {
  const rows = await sql<{ organization_id: number }[]>`
    with recursive pending (organization_id) as (
      (select organization_id from webhook_deliveries
        where status = 'pending' and organization_id > ${afterId} order by organization_id limit 1)
      union all
      select (select next.organization_id from webhook_deliveries next
        where next.status = 'pending' and next.organization_id > pending.organization_id
        order by next.organization_id limit 1)
      from pending where pending.organization_id is not null
    ), free as (
      select organization_id from pending
      where organization_id is not null
        and case when exists (select from webhook_owners held
            where held.organization_id = pending.organization_id and held.leased_until > now())
          then false
          -- After the check of leases, because most of these are held.
          when pending.organization_id = any(${[...except]}::bigint[]) then false
          else ${hasSendable(sql, sql`pending.organization_id`)} end
      limit ${limit}
    )
    insert into webhook_owners (organization_id, leased_by, leased_until)
    select organization_id, ${signerId}::uuid, now() + ${leaseMs}::float8 * interval '1 millisecond' from free
    on conflict (organization_id) do update set leased_by = excluded.leased_by, leased_until = excluded.leased_until
      where webhook_owners.leased_until <= now()
    returning organization_id`;
  return rows.map((row) => row.organization_id);
}

/** Releases the leases of owners, so that another process need not wait until they lapse. */
export async function releaseOwners(
  sql: Database,
  { signerId, organizationIds }: { readonly signerId: string; readonly organizationIds: readonly number[] },
): Promise<void> {
  await sql`
    update webhook_owners set leased_until = '-infinity', leased_by = null
    where leased_by = ${signerId} and organization_id = any(${[...organizationIds]}::bigint[])`;
}

/** Deletes this process, which ends, and processes that ended long ago without deleting themselves. */
export async function deleteSigners(sql: Database, signerId: string, deadForMs: number): Promise<void> {
  await sql`
    delete from webhook_signers
    where signer_id = ${signerId} or seen_at < now() - ${deadForMs}::float8 * interval '1 millisecond'`;
}

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
 * The owner's active endpoints with due deliveries, without those of suspended consumers; their breakers may be open. Those
 * in `known` are returned even if nothing is due. So a known endpoint that is missing from the result must receive nothing
 * more.
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
  /** Of the request that caused the delivery, or the last one that requested one more attempt. */
  readonly request_id: string | null;
  /** For an offer: milliseconds until it expires, by PostgreSQL's clock; zero or less when it has lapsed. */
  readonly lapses_in_ms: number | null;
}

interface DueRequest {
  /** How many deliveries to read for each endpoint. */
  readonly wanted: readonly { readonly endpointId: number; readonly count: number }[];
  /** Deliveries that this process already holds; the result does not contain them. */
  readonly inHand: readonly number[];
}

/** Due deliveries of these endpoints; for each endpoint those that are due the longest. */
export async function listDue(sql: Database, { wanted, inHand }: DueRequest): Promise<readonly DueRow[]> {
  // The array is built here, because the driver would search each id for quotes.
  const known = `{${inHand.join(",")}}`;
  return await sql<DueRow[]>`
    select d.*
    from unnest(
      ${wanted.map((one) => one.endpointId)}::bigint[], ${wanted.map((one) => one.count)}::int[]
    ) as w (endpoint_id, most) cross join lateral (
      select delivery_id, endpoint_id, body, request_id, ${stepColumns(sql)},
        (extract(epoch from lapses_at - clock_timestamp()) * 1000)::float8 as lapses_in_ms
      from webhook_deliveries
      where endpoint_id = w.endpoint_id and status = 'pending' and due_at <= now()
        and delivery_id not in (select known from unnest(${known}::bigint[]) as known)
      order by due_at, delivery_id limit w.most
    ) d`;
}

/** Ends those of these deliveries whose offers have expired. */
export async function lapseExpired(sql: Database, deliveryIds: readonly number[]): Promise<void> {
  await sql`
    update webhook_deliveries set ${endedAs(sql, "lapsed")}
    where delivery_id = any(${[...deliveryIds]}::bigint[]) and status = 'pending' and lapses_at <= now()`;
}

export interface DueSummary {
  readonly rows: number;
  readonly oldestAgeMs: number;
}

/** How many deliveries can be sent now, counted up to `limit`, and how long the oldest of them has been due. */
export async function summarizeDue(sql: Database, limit: number): Promise<DueSummary> {
  const [row] = await sql<[{ rows: number; oldest_age_ms: number }]>`
    select count(*)::int as rows,
      coalesce(extract(epoch from clock_timestamp() - min(due_at)) * 1000, 0)::float8 as oldest_age_ms
    from (
      select d.due_at from webhook_deliveries d join webhook_endpoints e using (endpoint_id)
        join robotics_consumers c on c.consumer_id = e.consumer_id
      where d.status = 'pending' and d.due_at <= now() and e.status = 'active' and c.status = 'active'
        and (e.open_until is null or e.open_until <= now())
      limit ${limit}
    ) as due`;
  return { rows: row.rows, oldestAgeMs: row.oldest_age_ms };
}
