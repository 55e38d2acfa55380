import type { Queryable, Transaction } from "../../db/pool.ts";
import type { DeviceRow } from "./devices.ts";

export interface EnrollmentCodeRow {
  readonly code_id: number;
  readonly device_id: number;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly status: "open" | "spent" | "expired" | "revoked";
}

/** A code's status follows from its times. One that expired before it was revoked has expired. */
const statusOf = (sql: Queryable) => sql`
  case
    when spent_at is not null then 'spent'
    when expires_at <= least(now(), revoked_at) then 'expired'
    when revoked_at is not null then 'revoked'
    else 'open'
  end as status`;

export async function issueEnrollmentCode(
  sql: Queryable,
  code: {
    readonly organizationId: number;
    readonly deviceId: number;
    readonly hash: Buffer;
    readonly lifetimeMs: number;
    readonly createdBy: number | null;
  },
): Promise<EnrollmentCodeRow> {
  const [row] = await sql<[EnrollmentCodeRow]>`
    insert into enrollment_codes (organization_id, device_id, code_hash, created_by, expires_at)
    values (${code.organizationId}, ${code.deviceId}, ${code.hash}, ${code.createdBy},
      now() + ${code.lifetimeMs}::float8 * interval '1 millisecond')
    returning code_id, device_id, created_at, expires_at, ${statusOf(sql)}`;
  return row;
}

/** Up to `limit` codes of a device, newest first: the newest of all, or those before one of them. */
export async function listEnrollmentCodes(
  sql: Queryable,
  page: { readonly deviceId: number; readonly beforeId: number | undefined; readonly limit: number },
): Promise<EnrollmentCodeRow[]> {
  const before = page.beforeId === undefined ? sql`` : sql`and code_id < ${page.beforeId}`;
  return sql<EnrollmentCodeRow[]>`
    select code_id, device_id, created_at, expires_at, ${statusOf(sql)} from enrollment_codes
    where device_id = ${page.deviceId} ${before} order by code_id desc limit ${page.limit}`;
}

export async function getEnrollmentCode(
  sql: Queryable,
  organizationId: number,
  codeId: number,
): Promise<EnrollmentCodeRow | undefined> {
  const [row] = await sql<EnrollmentCodeRow[]>`
    select code_id, device_id, created_at, expires_at, ${statusOf(sql)} from enrollment_codes
    where organization_id = ${organizationId} and code_id = ${codeId}`;
  return row;
}

/** The organization of a code that can still be claimed. Finds nothing, as below, for any other code. */
export async function organizationOfClaimableCode(sql: Queryable, hash: Buffer): Promise<number | undefined> {
  const [row] = await sql<{ organization_id: number }[]>`
    select organization_id
    from enrollment_codes codes join devices using (organization_id, device_id)
    where codes.code_hash = ${hash} and codes.spent_at is null and codes.revoked_at is null
      and codes.expires_at > now() and devices.status = 'pending'`;
  return row?.organization_id;
}

/**
 * The pending device of a code that can still be claimed, locked until the transaction ends. Unknown, spent, revoked and
 * expired codes find nothing alike. Nothing is locked or written for them: a lock costs a write, whose time would show
 * which code it was (I10).
 */
export async function lockDeviceOfClaimableCode(
  sql: Transaction,
  hash: Buffer,
): Promise<(DeviceRow & { readonly code_id: number }) | undefined> {
  const [row] = await sql<(DeviceRow & { code_id: number })[]>`
    select devices.*, codes.code_id
    from enrollment_codes codes join devices using (organization_id, device_id)
    where codes.code_hash = ${hash} and codes.spent_at is null and codes.revoked_at is null
      and codes.expires_at > now() and devices.status = 'pending'
    for update of devices`;
  return row;
}

/**
 * Spends a code. Of two claims at once exactly one gets true: the other waits for the device's lock and finds the code
 * spent.
 */
export async function spendEnrollmentCode(sql: Transaction, codeId: number): Promise<boolean> {
  const rows = await sql`
    update enrollment_codes set spent_at = now()
    where code_id = ${codeId} and spent_at is null and revoked_at is null and expires_at > now()
    returning code_id`;
  return rows.length === 1;
}

/** Revokes the device's codes that are not spent, also those that have expired. */
export async function revokeEnrollmentCodes(sql: Transaction, deviceId: number): Promise<void> {
  await sql`
    update enrollment_codes set revoked_at = now()
    where device_id = ${deviceId} and spent_at is null and revoked_at is null`;
}

/** The same for every device of a station that closes. */
export async function revokeEnrollmentCodesOfStation(sql: Transaction, stationId: number): Promise<void> {
  await sql`
    update enrollment_codes set revoked_at = now() from devices
    where devices.device_id = enrollment_codes.device_id and devices.station_id = ${stationId}
      and enrollment_codes.spent_at is null and enrollment_codes.revoked_at is null`;
}
