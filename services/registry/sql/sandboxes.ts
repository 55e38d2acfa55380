import type { Queryable, Transaction } from "../../db/pool.ts";
import type { DeviceRow } from "./devices.ts";

/** The settings of a device that a reset has kept. */
export type KeptSettings = Pick<DeviceRow, "device_id" | "capabilities" | "handoff_target">;

export interface SandboxRow {
  readonly sandbox_id: number;
  readonly organization_id: number;
  readonly station_id: number;
  readonly display_id: number;
  readonly companion_id: number;
  readonly cashier_id: number;
  readonly config_id: number;
  readonly created_at: Date;
  readonly reset_at: Date | null;
  readonly kept_settings: readonly KeptSettings[] | null;
}

interface NewSandbox {
  readonly organizationId: number;
  readonly stationId: number;
  readonly displayId: number;
  readonly companionId: number;
  readonly cashierId: number;
  readonly configId: number;
  readonly ownsConfig: boolean;
}

export async function createSandbox(sql: Transaction, sandbox: NewSandbox): Promise<SandboxRow> {
  const { organizationId, stationId, displayId, companionId, cashierId, configId, ownsConfig } = sandbox;
  const [row] = await sql<[SandboxRow]>`
    insert into sandboxes (organization_id, station_id, display_id, companion_id, cashier_id, config_id, owns_config)
    values (${organizationId}, ${stationId}, ${displayId}, ${companionId}, ${cashierId}, ${configId}, ${ownsConfig})
    returning *`;
  return row;
}

/** Up to `limit` sandboxes of the organization after one of them, by id. */
export async function listSandboxes(
  sql: Queryable,
  page: { readonly organizationId: number; readonly sinceId: number; readonly limit: number },
): Promise<SandboxRow[]> {
  return sql<SandboxRow[]>`
    select * from sandboxes
    where organization_id = ${page.organizationId} and sandbox_id > ${page.sinceId} and deleted_at is null
    order by sandbox_id limit ${page.limit}`;
}

export async function countSandboxes(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from sandboxes where organization_id = ${organizationId} and deleted_at is null`;
  return row.count;
}

export async function getSandbox(
  sql: Queryable,
  organizationId: number,
  sandboxId: number,
  lock = sql``,
): Promise<SandboxRow | undefined> {
  const [row] = await sql<SandboxRow[]>`
    select * from sandboxes
    where organization_id = ${organizationId} and sandbox_id = ${sandboxId} and deleted_at is null ${lock}`;
  return row;
}

/** The sandbox, locked until the transaction ends, so that its changes follow one another. */
export const lockSandbox = async (
  tx: Transaction,
  organizationId: number,
  sandboxId: number,
): Promise<SandboxRow | undefined> => await getSandbox(tx, organizationId, sandboxId, tx`for update`);

/** The devices are new where an earlier one was revoked. */
export async function markReset(
  sql: Transaction,
  reset: Pick<NewSandbox, "displayId" | "companionId"> & {
    readonly sandboxId: number;
    readonly keptSettings: readonly KeptSettings[] | null;
  },
): Promise<SandboxRow> {
  const { sandboxId, displayId, companionId, keptSettings } = reset;
  const [row] = await sql<[SandboxRow]>`
    update sandboxes set reset_at = now(), display_id = ${displayId}, companion_id = ${companionId},
      kept_settings = ${keptSettings && sql.json(keptSettings.map((each) => ({ ...each })))}
    where sandbox_id = ${sandboxId} returning *`;
  return row;
}

/** Returns the time of the deletion. */
export async function markDeleted(sql: Transaction, sandboxId: number): Promise<Date> {
  const [row] = await sql<[{ deleted_at: Date }]>`
    update sandboxes set deleted_at = now() where sandbox_id = ${sandboxId} returning deleted_at`;
  return row.deleted_at;
}

export async function getDeletedSandbox(
  sql: Transaction,
  organizationId: number,
  sandboxId: number,
): Promise<(SandboxRow & { readonly deleted_at: Date }) | undefined> {
  const [row] = await sql<(SandboxRow & { readonly deleted_at: Date })[]>`
    select * from sandboxes
    where organization_id = ${organizationId} and sandbox_id = ${sandboxId} and deleted_at is not null`;
  return row;
}

/** Whether the config was made for a sandbox, and no sandbox uses it any more. */
export async function isConfigUnused(sql: Transaction, configId: number): Promise<boolean> {
  const [row] = await sql<[{ unused: boolean }]>`
    select coalesce(bool_or(owns_config) and bool_and(deleted_at is not null), false) as unused
    from sandboxes where config_id = ${configId}`;
  return row.unused;
}
