import type { DeviceStatus } from "../../../machines/standing.ts";
import type { Capability, DeviceKind } from "../../../machines/station/state.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface DeviceRow {
  readonly device_id: number;
  readonly organization_id: number;
  readonly station_id: number;
  readonly name: string;
  readonly kind: DeviceKind;
  readonly capabilities: Capability[];
  readonly status: DeviceStatus;
  readonly handoff_target: string;
  readonly revision: number;
  readonly created_at: Date;
  readonly enrolled_at: Date | null;
}

interface NewDevice {
  readonly organizationId: number;
  readonly stationId: number;
  readonly name: string;
  readonly kind: DeviceKind;
  readonly capabilities: readonly Capability[];
  readonly handoffTarget: string;
}

export async function registerDevice(sql: Queryable, device: NewDevice): Promise<DeviceRow> {
  const [row] = await sql<[DeviceRow]>`
    insert into devices (organization_id, station_id, name, kind, capabilities, handoff_target)
    values (${device.organizationId}, ${device.stationId}, ${device.name}, ${device.kind},
      ${[...device.capabilities]}, ${device.handoffTarget})
    returning *`;
  return row;
}

/** Up to `limit` devices after one of them, by id: of the organization or one of its stations, of one status or any. */
export async function listDevices(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly stationId: number | undefined;
    readonly status: DeviceStatus | undefined;
    readonly sinceId: number;
    readonly limit: number;
  },
): Promise<DeviceRow[]> {
  const ofStation = page.stationId === undefined ? sql`` : sql`and station_id = ${page.stationId}`;
  const ofStatus = page.status === undefined ? sql`` : sql`and status = ${page.status}`;
  return sql<DeviceRow[]>`
    select * from devices
    where organization_id = ${page.organizationId} ${ofStation} ${ofStatus} and device_id > ${page.sinceId}
    order by device_id limit ${page.limit}`;
}

export async function getDevice(
  sql: Queryable,
  organizationId: number,
  deviceId: number,
  lock = sql``,
): Promise<DeviceRow | undefined> {
  const [row] = await sql<DeviceRow[]>`
    select * from devices where organization_id = ${organizationId} and device_id = ${deviceId} ${lock}`;
  return row;
}

/** The device, locked until the transaction ends. Only the holder of this lock changes its codes and credentials. */
export const lockDevice = async (
  tx: Transaction,
  organizationId: number,
  deviceId: number,
): Promise<DeviceRow | undefined> => await getDevice(tx, organizationId, deviceId, tx`for update`);

/** The devices of a station that are not revoked; the caller has locked the station. */
export async function countDevicesInUse(sql: Queryable, stationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from devices where station_id = ${stationId} and status <> 'revoked'`;
  return row.count;
}

/** The station's oldest device of a kind that is not revoked. */
export async function getDeviceOfKind(
  sql: Queryable,
  stationId: number,
  kind: DeviceKind,
): Promise<DeviceRow | undefined> {
  const [row] = await sql<DeviceRow[]>`
    select * from devices where station_id = ${stationId} and kind = ${kind} and status <> 'revoked'
    order by device_id limit 1`;
  return row;
}

export async function changeDevice(
  sql: Queryable,
  device: Pick<DeviceRow, "device_id" | "name" | "capabilities" | "handoff_target">,
): Promise<DeviceRow> {
  const [row] = await sql<[DeviceRow]>`
    update devices set name = ${device.name}, capabilities = ${device.capabilities},
      handoff_target = ${device.handoff_target}, revision = revision + 1
    where device_id = ${device.device_id} returning *`;
  return row;
}

/** A revoked device keeps the time of its revocation. */
export async function moveDevice(sql: Queryable, deviceId: number, status: DeviceStatus): Promise<DeviceRow> {
  const [row] = await sql<[DeviceRow]>`
    update devices set status = ${status}, revision = revision + 1,
      revoked_at = case when ${status} = 'revoked' then now() else revoked_at end
    where device_id = ${deviceId} returning *`;
  return row;
}

/** Stores that the device has claimed its code. */
export async function enrollDevice(sql: Queryable, deviceId: number, status: DeviceStatus): Promise<DeviceRow> {
  const [row] = await sql<[DeviceRow]>`
    update devices set status = ${status}, revision = revision + 1, enrolled_at = now()
    where device_id = ${deviceId} returning *`;
  return row;
}

/** The stations' devices: of each station the newest revoked ones, then all others. */
export async function announceDevices(
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

export async function insertCredential(
  sql: Transaction,
  credential: {
    readonly organizationId: number;
    readonly deviceId: number;
    readonly hash: Buffer;
    readonly scopes: readonly string[];
  },
): Promise<void> {
  await sql`
    insert into device_credentials (organization_id, device_id, credential_hash, scopes)
    values (${credential.organizationId}, ${credential.deviceId}, ${credential.hash}, ${[...credential.scopes]})`;
}

/** Revokes the device's credential and returns its hash in hex; empty when it has none. */
export async function revokeCredentials(sql: Transaction, deviceId: number): Promise<string[]> {
  const rows = await sql<{ hash: string }[]>`
    update device_credentials set revoked_at = now() where device_id = ${deviceId} and revoked_at is null
    returning encode(credential_hash, 'hex') as hash`;
  return rows.map((row) => row.hash);
}

interface AnnouncedCredentialRow {
  readonly credential_id: number;
  readonly hash: string;
  readonly device_id: number;
  readonly station_id: number;
  readonly scopes: string[];
  readonly is_valid: boolean;
}

/** Credentials of all organizations, revoked ones too, after one of them, by id. */
export async function announceCredentials(
  sql: Queryable,
  { sinceId, limit }: { readonly sinceId: number; readonly limit: number },
): Promise<AnnouncedCredentialRow[]> {
  return sql<AnnouncedCredentialRow[]>`
    select c.credential_id, encode(c.credential_hash, 'hex') as hash, c.device_id, d.station_id, c.scopes,
           c.revoked_at is null as is_valid
    from device_credentials c join devices d using (device_id)
    where c.credential_id > ${sinceId} order by c.credential_id limit ${limit}`;
}
