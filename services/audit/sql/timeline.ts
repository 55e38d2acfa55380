/**
 * Reads what a timeline has besides the station's events: the transaction, device names, kill switches, and the decisions of
 * people about provider payments. Each query is limited to one organization.
 */
import type { Database } from "../../db/pool.ts";
import type { ProviderActor } from "../../db/provider-audit-log.ts";
import { readStoredText } from "../../db/stored-text.ts";

interface IntentKey {
  readonly organizationId: number;
  readonly intentId: number;
}

const actorOf = (database: Database) =>
  database`jsonb_build_object('kind', e.actor_role, 'id', e.actor_id, 'name', e.actor_name)`;

/** As `e`: the newest event with a person's decision about the issue `i`. After an undone closing it is the later closing. */
const joinDecision = (database: Database, action: "attributed" | "closed") => database`
  join lateral (
    select event_id, at, actor_role, actor_id, actor_name from provider_events
    where organization_id = i.organization_id and subject_kind in ('issue', 'provider_issue') and subject_id = i.issue_id
      and action in (${`issue_${action}`}, ${`provider_issue_${action}`})
    order by event_id desc limit 1) e on true`;

/** The transaction of an intent, as the payment seam has recorded it. It decides, whatever the station has committed. */
export interface Settlement {
  readonly transactionId: number;
  readonly reference: string;
  readonly amountMinor: string;
  readonly currency: string;
  readonly settledAtMs: number;
}

export async function findSettlement(
  database: Database,
  { organizationId, intentId }: IntentKey,
): Promise<Settlement | undefined> {
  const [row] = await database<Settlement[]>`
    select transaction_id as "transactionId", reference, amount_minor::text as "amountMinor", currency,
           floor(extract(epoch from settled_at) * 1000)::bigint as "settledAtMs"
    from transactions where organization_id = ${organizationId} and intent_id = ${intentId}`;
  return row && { ...row, reference: readStoredText(row.reference) };
}

/**
 * The names of the organization's devices at that moment, by id: the old name in the first renaming since then, otherwise the
 * name in the registry now. A device that the registry does not have has no name.
 */
export async function selectDeviceNames(
  database: Database,
  key: { readonly organizationId: number; readonly deviceIds: readonly number[]; readonly atMs: number },
): Promise<Map<number, string>> {
  if (key.deviceIds.length === 0) return new Map();
  const rows = await database<{ device_id: number; name: string }[]>`
    select d.device_id, coalesce((
      select e.data -> 'from' ->> 'name' from registry_events e
      where e.organization_id = d.organization_id and e.subject_kind = 'device' and e.subject_id = d.device_id
        and e.action = 'device_changed' and e.at > to_timestamp(${key.atMs}::bigint / 1000.0)
      order by e.event_id limit 1), d.name) as name
    from devices d
    where d.organization_id = ${key.organizationId} and d.device_id = any(${[...key.deviceIds]}::bigint[])`;
  return new Map(rows.map((row) => [row.device_id, row.name]));
}

/** A kill switch that was turned on or off. */
export interface SwitchChange {
  readonly atMs: number;
  /** `<subject>_frozen` or `<subject>_unfrozen`, as in the registry's audit log. */
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: number };
  readonly actor: ProviderActor;
  readonly reason: string;
}

/**
 * The changes between two moments about the payment's organization, station, device and provider config, or about the
 * platform, and each earlier freeze that still held at the first moment; oldest first, the newest `limit`. Null for `toMs`
 * is a payment that is under way.
 */
export async function selectSwitchChanges(
  database: Database,
  key: {
    readonly organizationId: number;
    readonly stationId: number;
    readonly deviceId: number | null;
    readonly configId: number | null;
    readonly fromMs: number;
    readonly toMs: number | null;
    readonly limit: number;
  },
): Promise<SwitchChange[]> {
  const { organizationId, stationId, deviceId, configId, fromMs, toMs, limit } = key;
  return database<SwitchChange[]>`
    with changes as (
      select e.*, floor(extract(epoch from e.at) * 1000)::bigint as at_ms,
        lead(floor(extract(epoch from e.at) * 1000)::bigint) over (partition by e.subject_kind, e.subject_id order by e.event_id) as next_at_ms
      from registry_events e
      where e.action like '%frozen' and (
        e.organization_id is null and e.subject_kind = 'platform'
        or e.organization_id = ${organizationId} and (e.subject_kind, e.subject_id) in (
          ('organization', ${organizationId}::bigint), ('station', ${stationId}::bigint),
          ('device', ${deviceId}::bigint), ('provider_config', ${configId}::bigint)))
    ), newest as (
      select * from changes
      where (at_ms >= ${fromMs} or action not like '%unfrozen' and (next_at_ms is null or next_at_ms >= ${fromMs}))
        and (${toMs}::bigint is null or at_ms <= ${toMs})
      order by event_id desc limit ${limit}
    )
    select at_ms as "atMs", action, jsonb_build_object('kind', subject_kind, 'id', subject_id) as subject,
           jsonb_build_object('kind', actor_kind, 'id', actor_id, 'name', actor_name) as actor,
           coalesce(data ->> 'reason', '') as reason
    from newest order by event_id`;
}

/** A provider payment that an operator attributed to an order. */
export interface Attribution {
  readonly issueId: number;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly transactionId: number;
  /** The transaction's own intent id, under which the whole attribution has a timeline. No station knows it. */
  readonly attributionIntentId: number;
  readonly amountMinor: string;
  readonly currency: string;
  readonly reference: string;
  readonly attributedAtMs: number;
  readonly by: ProviderActor;
  readonly reason: string;
}

/** The same with where it came from and how it was settled. */
export interface AttributionHistory extends Attribution {
  readonly stationId: number;
  readonly settledAtMs: number;
  readonly issueKind: string;
  /** Null for a payment that came from a statement of an account without a config. */
  readonly configId: number | null;
  /** The collection that the provider payment was meant for, where that is known. */
  readonly meantForIntentId: number | null;
  readonly openedAtMs: number;
}

const attributionColumns = (database: Database) => database`
  i.issue_id as "issueId", t.order_id as "orderId", o.display_number as "orderDisplayNumber",
  t.transaction_id as "transactionId", t.intent_id as "attributionIntentId", t.amount_minor::text as "amountMinor",
  t.currency, t.reference, floor(extract(epoch from e.at) * 1000)::bigint as "attributedAtMs", ${actorOf(database)} as by,
  coalesce(i.reason, '') as reason`;

/** An attributed issue, its transaction, its order, and the event with the person who decided it. */
const attributions = (database: Database) => database`
  issues i
  join transactions t on t.organization_id = i.organization_id and t.transaction_id = i.transaction_id
  join orders o on o.order_id = t.order_id
  ${joinDecision(database, "attributed")}`;

/** The attribution whose transaction has this intent id; undefined when the organization has none. */
export async function findAttribution(
  database: Database,
  { organizationId, intentId }: IntentKey,
): Promise<AttributionHistory | undefined> {
  const [row] = await database<AttributionHistory[]>`
    select ${attributionColumns(database)}, t.station_id as "stationId", floor(extract(epoch from t.settled_at) * 1000)::bigint as "settledAtMs",
           i.kind as "issueKind", i.config_id as "configId", i.intent_id as "meantForIntentId",
           floor(extract(epoch from i.opened_at) * 1000)::bigint as "openedAtMs"
    from ${attributions(database)}
    where t.organization_id = ${organizationId} and t.intent_id = ${intentId} and i.status = 'attributed'
    order by e.event_id limit 1`;
  return row && { ...row, reference: readStoredText(row.reference) };
}

/** The attributions of provider payments that were meant for this intent; oldest first, at most `limit`. */
export async function selectAttributions(
  database: Database,
  { organizationId, intentId, limit }: IntentKey & { readonly limit: number },
): Promise<Attribution[]> {
  const rows = await database<Attribution[]>`
    select ${attributionColumns(database)} from ${attributions(database)}
    where i.organization_id = ${organizationId} and i.intent_id = ${intentId} and i.status = 'attributed'
      and t.intent_id <> i.intent_id
    order by e.at, i.issue_id limit ${limit}`;
  return rows.map((row) => ({ ...row, reference: readStoredText(row.reference) }));
}

/** An issue that a person closed, because it was resolved outside. */
export interface ClosedIssue {
  readonly issueId: number;
  readonly kind: string;
  readonly closedAtMs: number;
  readonly by: ProviderActor;
  readonly reason: string;
}

export interface PaymentIssues {
  /** Oldest first. */
  readonly closed: readonly ClosedIssue[];
  /** Whether another issue of the intent still waits for a person; false without a closed issue. */
  readonly hasOpen: boolean;
}

/** The newest closed issues about money of this intent, at most `limit`, and whether another one waits. */
export async function selectPaymentIssues(
  database: Database,
  { organizationId, intentId, limit }: IntentKey & { readonly limit: number },
): Promise<PaymentIssues> {
  const rows = await database<(ClosedIssue & { readonly hasOpen: boolean })[]>`
    select i.issue_id as "issueId", i.kind, floor(extract(epoch from e.at) * 1000)::bigint as "closedAtMs", ${actorOf(database)} as by,
           coalesce(i.reason, '') as reason,
           exists (select from issues o
             where o.intent_id = i.intent_id and o.organization_id = i.organization_id and o.money_names <> '{}'
               and o.status in ('open', 'assigned')) as "hasOpen"
    from issues i ${joinDecision(database, "closed")}
    where i.organization_id = ${organizationId} and i.intent_id = ${intentId} and i.status = 'closed' and i.money_names <> '{}'
    order by e.at desc, i.issue_id desc limit ${limit}`;
  const closed = rows.toReversed().map(({ hasOpen: _hasOpen, ...issue }) => issue);
  return { closed, hasOpen: rows.some((row) => row.hasOpen) };
}

/** How many of an intent's provider payments have a separate reference: all, none, or some. */
export type OwnReferences = "all" | "none" | "some";

/** Reads it from the issues of this intent about the reference of a provider payment. */
export async function selectOwnReferences(
  database: Database,
  { organizationId, intentId }: IntentKey,
): Promise<OwnReferences> {
  const [row] = await database<{ readonly named: number; readonly unnamed: number }[]>`
    select count(*) filter (where provider_reference <> '')::int as named,
           count(*) filter (where provider_reference = '')::int as unnamed
    from issues
    where organization_id = ${organizationId} and intent_id = ${intentId} and kind = 'reference_mismatch' and money_names <> '{}'`;
  if (row === undefined || row.unnamed === 0) return "all";
  return row.named === 0 ? "none" : "some";
}
