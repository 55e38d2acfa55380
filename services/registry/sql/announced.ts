/** What the bus is told anew after it has lost data: pages over all organizations, in the order of ids. */
import type { Queryable } from "../../db/pool.ts";
import type { DeviceRow } from "./devices.ts";
import type { StationRow } from "./stations.ts";
import type { UserRow } from "./users.ts";

interface Page {
  readonly sinceId: number;
  readonly limit: number;
}

export async function pageOfStations(sql: Queryable, { sinceId, limit }: Page): Promise<StationRow[]> {
  return sql<StationRow[]>`select * from stations where station_id > ${sinceId} order by station_id limit ${limit}`;
}

/** The stations' devices: of each station the newest revoked ones, then all others. */
export async function devicesOfStations(
  sql: Queryable,
  stationIds: readonly number[],
  revokedPerStation: number,
): Promise<DeviceRow[]> {
  return sql<DeviceRow[]>`
    select * from (
      select d.*, row_number() over (
        partition by d.station_id, d.status = 'revoked' order by d.revoked_at desc, d.device_id) as place
      from stations s join devices d using (organization_id, station_id)
      where s.station_id = any(${[...stationIds]}::bigint[])) as placed
    where status <> 'revoked' or place <= ${revokedPerStation}
    order by station_id, status <> 'revoked', revoked_at, device_id`;
}

export interface AnnouncedCredentialRow {
  readonly credential_id: number;
  readonly hash: string;
  readonly device_id: number;
  readonly station_id: number;
  readonly scopes: string[];
  readonly is_valid: boolean;
}

export async function pageOfCredentials(sql: Queryable, { sinceId, limit }: Page): Promise<AnnouncedCredentialRow[]> {
  return sql<AnnouncedCredentialRow[]>`
    select c.credential_id, encode(c.credential_hash, 'hex') as hash, c.device_id, d.station_id, c.scopes,
           c.revoked_at is null as is_valid
    from device_credentials c join devices d using (device_id)
    where c.credential_id > ${sinceId} order by c.credential_id limit ${limit}`;
}

export interface AnnouncedSessionRow extends Pick<UserRow, "user_id" | "organization_id" | "name" | "role"> {
  readonly session_id: number;
  readonly hash: string;
  readonly expires_at: Date;
  readonly is_open: boolean;
}

export async function pageOfSessions(sql: Queryable, { sinceId, limit }: Page): Promise<AnnouncedSessionRow[]> {
  return sql<AnnouncedSessionRow[]>`
    select s.session_id, encode(s.token_hash, 'hex') as hash, s.expires_at, s.ended_at is null as is_open,
           u.user_id, u.organization_id, u.name, u.role
    from sessions s join users u using (user_id)
    where s.session_id > ${sinceId} and s.expires_at > now() order by s.session_id limit ${limit}`;
}
