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

export interface NewDevice {
  readonly organizationId: number;
  readonly stationId: number;
  readonly name: string;
  readonly kind: DeviceKind;
  readonly capabilities: readonly Capability[];
  readonly handoffTarget: string;
}

export async function insertDevice(sql: Queryable, device: NewDevice): Promise<DeviceRow> {
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

export async function findDevice(
  sql: Queryable,
  organizationId: number,
  deviceId: number,
): Promise<DeviceRow | undefined> {
  const [row] = await sql<DeviceRow[]>`
    select * from devices where organization_id = ${organizationId} and device_id = ${deviceId}`;
  return row;
}

/** The device, held until the transaction ends. Codes and credentials are only touched by whoever holds their device. */
export async function lockDevice(
  sql: Transaction,
  organizationId: number,
  deviceId: number,
): Promise<DeviceRow | undefined> {
  const [row] = await sql<DeviceRow[]>`
    select * from devices where organization_id = ${organizationId} and device_id = ${deviceId} for update`;
  return row;
}

/** The devices of a station that take part or may yet; the caller holds the station. */
export async function countDevicesInUse(sql: Queryable, stationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from devices where station_id = ${stationId} and status <> 'revoked'`;
  return row.count;
}

/** The station's oldest device of a kind that is not revoked. */
export async function findDeviceOfKind(
  sql: Queryable,
  stationId: number,
  kind: DeviceKind,
): Promise<DeviceRow | undefined> {
  const [row] = await sql<DeviceRow[]>`
    select * from devices where station_id = ${stationId} and kind = ${kind} and status <> 'revoked'
    order by device_id limit 1`;
  return row;
}

export async function setDeviceDescription(
  sql: Queryable,
  device: Pick<DeviceRow, "device_id" | "name" | "capabilities" | "handoff_target">,
): Promise<DeviceRow> {
  const [row] = await sql<[DeviceRow]>`
    update devices set name = ${device.name}, capabilities = ${device.capabilities},
      handoff_target = ${device.handoff_target}, revision = revision + 1
    where device_id = ${device.device_id} returning *`;
  return row;
}

export async function setDeviceStatus(sql: Queryable, deviceId: number, status: DeviceStatus): Promise<DeviceRow> {
  const [row] = await sql<[DeviceRow]>`
    update devices set status = ${status}, revision = revision + 1,
      revoked_at = case when ${status} = 'revoked' then now() else revoked_at end
    where device_id = ${deviceId} returning *`;
  return row;
}

/** A claimed device takes part from now on. */
export async function setDeviceEnrolled(sql: Queryable, deviceId: number, status: DeviceStatus): Promise<DeviceRow> {
  const [row] = await sql<[DeviceRow]>`
    update devices set status = ${status}, revision = revision + 1, enrolled_at = now()
    where device_id = ${deviceId} returning *`;
  return row;
}
