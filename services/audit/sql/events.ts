/** Reads the copied events. Each query is limited to one organization. */
import type { AuditEvent } from "../../bus/messages/events.ts";
import type { Database } from "../../db/pool.ts";
import { readStoredJson } from "../../db/stored-text.ts";

/** When the commit has no name, the name that the registry has now. */
const eventColumns = (database: Database) => database`
  e.station_id as "stationId", e.version, e.ordinal, floor(extract(epoch from e.at) * 1000)::bigint as "atMs", e.type,
  e.intent_id as "intentId", e.data,
  jsonb_build_object('kind', e.actor_kind, 'id', e.actor_id, 'name', coalesce(
    nullif(e.actor_name, ''),
    case e.actor_kind
      when 'device' then (select d.name from devices d where d.organization_id = e.organization_id and d.device_id = e.actor_id)
      when 'owner' then (select u.name from users u where u.organization_id = e.organization_id and u.user_id = e.actor_id)
      when 'cashier' then (select u.name from users u where u.organization_id = e.organization_id and u.user_id = e.actor_id)
    end,
    '')) as actor`;

const readStored = (row: AuditEvent): AuditEvent => ({ ...row, data: readStoredJson(row.data) });

export async function stationExists(
  database: Database,
  key: { readonly organizationId: number; readonly stationId: number },
): Promise<boolean> {
  const rows = await database`
    select from stations where organization_id = ${key.organizationId} and station_id = ${key.stationId}`;
  return rows.length > 0;
}

/**
 * A station's events after a version, oldest first. A page has all events of a commit or none, so it may have a few more than
 * `limit`.
 */
export async function listStationEvents(
  database: Database,
  page: {
    readonly organizationId: number;
    readonly stationId: number;
    readonly sinceVersion: number;
    readonly limit: number;
  },
): Promise<AuditEvent[]> {
  const { organizationId, stationId, sinceVersion, limit } = page;
  const rows = await database<AuditEvent[]>`
    select ${eventColumns(database)} from station_events e
    where e.organization_id = ${organizationId} and e.station_id = ${stationId} and e.version > ${sinceVersion}
      and e.version <= (
        select max(version) from (
          select version from station_events
          where station_id = ${stationId} and version > ${sinceVersion}
          order by version, ordinal limit ${limit}) as first_events)
    order by e.version, e.ordinal`;
  return rows.map(readStored);
}

/** Whether the station has an event after this version. */
export async function hasLaterEvents(
  database: Database,
  key: { readonly stationId: number; readonly version: number },
): Promise<boolean> {
  const rows = await database`
    select from station_events where station_id = ${key.stationId} and version > ${key.version} limit 1`;
  return rows.length > 0;
}

/**
 * The events of an intent, oldest first: the first one and the newest ones when there are more than `limit`. Also the events
 * of its order, and the gaps and losses in the copy, while the intent was under way.
 */
export async function selectIntentEvents(
  database: Database,
  key: {
    readonly organizationId: number;
    readonly stationId: number;
    readonly intentId: number;
    readonly orderId: number;
    readonly limit: number;
  },
): Promise<AuditEvent[]> {
  const { organizationId, stationId, intentId, orderId, limit } = key;
  const rows = await database<AuditEvent[]>`
    with own as (
      select station_id, version, ordinal, type,
             row_number() over (order by version, ordinal) as place, count(*) over () as events
      from station_events
      where intent_id = ${intentId} and station_id = ${stationId} and organization_id = ${organizationId}
    ), span as (
      select min(version) as first,
             max(version) filter (where type in ('intent_succeeded', 'intent_cancelled', 'intent_expired', 'provider_failed',
               'intent_overtaken')) as ended
      from own
    ), losses as (
      select l.station_id, l.version, l.ordinal from station_events l
      where l.station_id = ${stationId} and l.type = 'log_lost' and exists (
        select from own where own.version between (l.data ->> 'fromVersion')::bigint and (l.data ->> 'toVersion')::bigint)
    ), chosen as (
      select station_id, version, ordinal from own where place = 1 or place > events - (${limit} - 1)
      union
      select station_id, version, ordinal from losses
      union
      select c.station_id, c.version, c.ordinal from span, station_events c
      where c.station_id = ${stationId} and c.version >= span.first and (span.ended is null or c.version <= span.ended)
        and (c.type in ('audit_gap', 'log_lost')
          or c.type in ('order_shown', 'order_cleared') and (c.data ->> 'orderId')::bigint = ${orderId})
    )
    select ${eventColumns(database)} from chosen join station_events e using (station_id, version, ordinal)
    where e.organization_id = ${organizationId}
    order by e.version, e.ordinal`;
  return rows.map(readStored);
}
