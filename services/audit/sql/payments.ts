/** The list of payments, and counts over them. One SQL operation per function. */
import type { PaymentIntent, UnclearReason } from "../../../machines/payment-intent.ts";
import { reasonWhenLost } from "../../../machines/station/lost-collections.ts";
import { reasonAfter } from "../../../machines/station/reasons.ts";
import type { Payment, PaymentsFilter } from "../../bus/messages/payments.ts";
import { readIntent } from "../../db/intent-history.ts";
import type { Database, ExpiredRows, Fragment, Queryable, Transaction } from "../../db/pool.ts";
import { readStoredText } from "../../db/stored-text.ts";
import type { LaterEvent, PaymentRow } from "../copy/payment-rows.ts";
import type { Gap } from "../copy/rows.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import type { CommitRange } from "./copy.ts";

export async function upsertPayments(sql: Transaction, payments: readonly PaymentRow[]): Promise<void> {
  if (payments.length === 0) return;
  await sql`
    insert into payments as known (intent_id, organization_id, filial_id, station_id, sandbox, version, route, status,
      amount_minor, currency, order_id, order_display_number, cashier_id, device_id, reference, money_may_have_moved,
      created_at, ended_at)
    select r.intent_id, r.organization_id, s.filial_id, r.station_id, s.sandbox, r.version, r.route, r.status,
      r.amount_minor, r.currency, r.order_id, r.order_display_number, r.cashier_id, r.device_id, r.reference,
      r.money_may_have_moved, to_timestamp(r.created_at_ms / 1000.0), to_timestamp(r.ended_at_ms / 1000.0)
    from jsonb_to_recordset(${JSON.stringify(payments)}::text::jsonb) as r (
      intent_id bigint, organization_id bigint, station_id bigint, version bigint, route text, status text,
      amount_minor bigint, currency text, order_id bigint, order_display_number bigint, cashier_id bigint,
      device_id bigint, reference text, money_may_have_moved text, created_at_ms double precision,
      ended_at_ms double precision)
    join stations s on s.station_id = r.station_id
    on conflict (intent_id) do update
    set version = excluded.version, status = excluded.status, device_id = excluded.device_id,
        reference = excluded.reference, money_may_have_moved = excluded.money_may_have_moved,
        ended_at = excluded.ended_at
    where known.version < excluded.version`;
}

/** Later evidence about ended payments, in the order of the log. */
export async function applyLaterEvents(sql: Transaction, later: readonly LaterEvent[]): Promise<void> {
  for (const { intentId, event } of later) {
    const [row] = await sql<{ reason: UnclearReason | "" }[]>`
      select money_may_have_moved as reason from payments
      where intent_id = ${intentId} and status in ('cancelled', 'expired')`;
    if (row === undefined) continue;
    const reason = reasonAfter(row.reason, event);
    await sql`update payments set money_may_have_moved = ${reason} where intent_id = ${intentId}`;
  }
}

/** The ended intents of a station whose end only missing commits had, as the station sent them to the settlement service. */
export async function selectMissingEnds(
  sql: Transaction,
  { stationId, fromVersion }: Pick<Gap, "stationId" | "fromVersion">,
): Promise<readonly PaymentIntent[]> {
  // A collection lasts less than a day, so this has the one that was open before the first missing commit.
  const [since] = await sql<{ at: Date }[]>`
    select coalesce((
        select e.at from station_events e where e.station_id = ${stationId} and e.version < ${fromVersion}
        order by e.version desc limit 1), s.created_at) - interval '1 day' as at
    from stations s where s.station_id = ${stationId}`;
  if (since === undefined) return [];
  const rows = await sql<{ ended: string }[]>`
    select r.ended from intent_records r left join payments p using (intent_id)
    where r.station_id = ${stationId} and r.created_at >= ${since.at} and r.ended is not null
      and (p.intent_id is null or p.version = 0 or p.status in ('created', 'presented', 'processing'))`;
  return rows.map(({ ended }) => readIntent(ended));
}

/**
 * Ends the open payments that only lost commits have: one with a transaction succeeded, and any other expired. The caller has
 * already stored those that the log still has.
 */
export async function endLostPayments(sql: Transaction, lost: CommitRange, atMs: number): Promise<void> {
  await sql`
    update payments p set status = 'succeeded', ended_at = t.settled_at, money_may_have_moved = '',
      reference = left(t.reference, ${AUDIT_LIMITS.paymentReferenceCharacters})
    from transactions t
    where t.intent_id = p.intent_id and p.organization_id = ${lost.organizationId} and p.station_id = ${lost.stationId}
      and p.version between ${lost.fromVersion} and ${lost.toVersion}
      and p.status in ('created', 'presented', 'processing')`;
  const rows = await sql<{ intent: string }[]>`
    select h.intent from payments p join intent_history h using (intent_id)
    where p.organization_id = ${lost.organizationId} and p.station_id = ${lost.stationId}
      and p.version between ${lost.fromVersion} and ${lost.toVersion}
      and p.status in ('created', 'presented', 'processing')`;
  for (const intent of rows.map((row) => readIntent(row.intent))) {
    await sql`
      update payments set status = 'expired', ended_at = to_timestamp(${atMs}::double precision / 1000.0),
        money_may_have_moved = ${reasonWhenLost(intent) ?? ""}
      where intent_id = ${intent.intentId}`;
  }
}

export async function deleteOldPayments(database: Database, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const deleted = await database`
    delete from payments where intent_id in (
      select intent_id from payments
      where created_at < now() - make_interval(days => ${olderThanDays}) limit ${rows})`;
  return deleted.count;
}

type Key = PaymentsFilter & { readonly organizationId: number };
interface Page {
  readonly beforeId: number | undefined;
  readonly limit: number;
}

/** Up to `limit` payments, newest first. */
export async function listPayments(database: Database, key: Key & Page): Promise<Payment[]> {
  return await planned(database, async (sql) => {
    const { beforeId, limit } = key;
    const before =
      beforeId === undefined
        ? sql``
        : sql`and (p.created_at, p.intent_id) < (select created_at, intent_id from payments where intent_id = ${beforeId})`;
    const rows = await sql<Payment[]>`
      with page as (
        select p.* from payments p where ${filtered(sql, key)} ${before}
        order by p.created_at desc, p.intent_id desc limit ${limit})
      select p.intent_id as "intentId", p.order_id as "orderId", p.order_display_number as "orderDisplayNumber",
        p.filial_id as "filialId", f.name as "filialName", p.station_id as "stationId", s.name as "stationName",
        p.sandbox, p.route, case when t.transaction_id is null then p.status else 'succeeded' end as status,
        p.amount_minor::text as "amountMinor", p.currency, p.cashier_id as "cashierId",
        coalesce(u.name, '') as "cashierName", p.device_id as "deviceId", coalesce(d.name, '') as "deviceName",
        coalesce(left(t.reference, ${AUDIT_LIMITS.paymentReferenceCharacters}), p.reference) as reference,
        t.transaction_id as "transactionId",
        case when t.transaction_id is null then p.money_may_have_moved else '' end as "moneyMayHaveMoved",
        floor(extract(epoch from p.created_at) * 1000)::bigint as "createdAtMs",
        floor(extract(epoch from coalesce(p.ended_at, t.settled_at)) * 1000)::bigint as "endedAtMs"
      from page p
      join filials f on f.filial_id = p.filial_id
      join stations s on s.station_id = p.station_id
      left join users u on u.user_id = p.cashier_id
      left join devices d on d.device_id = p.device_id
      left join transactions t on t.intent_id = p.intent_id
      order by p.created_at desc, p.intent_id desc`;
    return rows.map((row) => ({ ...row, reference: readStoredText(row.reference) }));
  });
}

/** Runs a read with a plan for its values: a plan for all values would read a million payments to find ten with a rare status. */
async function planned<T>(database: Database, read: (sql: Transaction) => Promise<T>): Promise<T> {
  return (await database.begin("read only", async (sql) => {
    const [, found] = await Promise.all([sql`set local plan_cache_mode = force_custom_plan`, read(sql)]);
    return found;
  })) as T;
}

function filtered(sql: Transaction, key: Key): Fragment {
  const conditions = [
    sql`p.organization_id = ${key.organizationId}`,
    key.filialId === undefined ? undefined : sql`p.filial_id = ${key.filialId}`,
    key.stationId === undefined ? undefined : sql`p.station_id = ${key.stationId}`,
    key.cashierId === undefined ? undefined : sql`p.cashier_id = ${key.cashierId}`,
    key.route === undefined ? undefined : sql`p.route = ${key.route}`,
    key.status === undefined ? undefined : sql`p.status = ${key.status}`,
    key.isOpen === undefined ? undefined : key.isOpen ? open(sql) : sql`not (${open(sql)})`,
    key.sandbox === undefined ? undefined : key.sandbox ? sql`p.sandbox` : sql`not p.sandbox`,
    key.currency === undefined ? undefined : sql`p.currency = ${key.currency}`,
    key.leastMinor === undefined ? undefined : sql`p.amount_minor >= ${key.leastMinor}::bigint`,
    key.mostMinor === undefined ? undefined : sql`p.amount_minor <= ${key.mostMinor}::bigint`,
    key.fromMs === undefined ? undefined : sql`p.created_at >= ${new Date(key.fromMs)}`,
    key.toMs === undefined ? undefined : sql`p.created_at < ${new Date(key.toMs)}`,
    key.search === undefined ? undefined : matching(sql, key.search),
  ].filter((condition) => condition !== undefined);
  return conditions.reduce((all, condition) => sql`${all} and ${condition}`);
}

const open = (sql: Queryable): Fragment => sql`status in ('created', 'presented', 'processing')`;

/** Payments whose reference begins with this text, and those of the order with this number. */
function matching(sql: Transaction, search: string): Fragment {
  const start = search.toLowerCase().replaceAll(/[\\%_]/g, String.raw`\$&`);
  const byReference = sql`p.reference <> '' and left(lower(p.reference), 100) like ${`${start}%`}`;
  return /^\d{1,15}$/.test(search) ? sql`(${byReference} or p.order_display_number = ${Number(search)})` : byReference;
}

interface LiveCounts {
  readonly stations: number;
  readonly leasedStations: number;
  readonly devicesOnline: number;
  readonly devicesOffline: number;
  readonly openCollections: number;
  readonly openIssues: number;
}

/** The live counts, in one statement. Each count ends at `most`. */
export async function countLive(
  database: Database,
  key: { readonly organizationId: number; readonly most: number },
): Promise<LiveCounts> {
  const { organizationId, most } = key;
  const [row] = await database<[LiveCounts]>`
    select h.stations, h."leasedStations", h."devicesOnline", h."devicesOffline",
      (select count(*) from (
        select from payments where organization_id = ${organizationId} and ${open(database)} limit ${most}) o) as "openCollections",
      (select count(*) from (
        select from issues where organization_id = ${organizationId} and status in ('open', 'assigned') limit ${most}) i
      ) as "openIssues"
    from (
      select count(*) as stations, count(*) filter (where h.leased_until > now()) as "leasedStations",
        coalesce(sum(h.devices_online), 0)::bigint as "devicesOnline",
        coalesce(sum(h.devices_offline), 0)::bigint as "devicesOffline"
      from (
        select h.* from audit_heads h join stations s using (station_id)
        where h.organization_id = ${organizationId} and s.status <> 'closed' limit ${most}) h
    ) h`;
  return row;
}

interface HourOfRoute {
  /** Null for the whole day. */
  readonly hour: number | null;
  readonly route: string;
  readonly collections: number;
  readonly succeeded: number;
  readonly medianMs: number | null;
}

/** The ended collections of a day: by route, and by route and the hour in which they began. */
export async function selectHours(
  database: Database,
  key: {
    readonly organizationId: number;
    readonly day: string;
    readonly timeZone: string;
    readonly sandbox: boolean | undefined;
  },
): Promise<HourOfRoute[]> {
  const { organizationId, day, timeZone, sandbox } = key;
  const ofSandbox = sandbox === undefined ? database`` : database`and sandbox = ${sandbox}`;
  return database<HourOfRoute[]>`
    select extract(hour from created_at at time zone ${timeZone})::int as hour, route, count(*) as collections,
      count(*) filter (where status = 'succeeded') as succeeded,
      (percentile_cont(0.5) within group (order by extract(epoch from ended_at - created_at) * 1000)
        filter (where status = 'succeeded'))::float8 as "medianMs"
    from payments
    where organization_id = ${organizationId} and version > 0 and ended_at is not null ${ofSandbox}
      and created_at >= first_instant(${day}::date, ${timeZone})
      and created_at < first_instant(${day}::date + 1, ${timeZone})
    group by grouping sets ((1, 2), (2)) order by 1, 2`;
}
