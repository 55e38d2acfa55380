/** Provider configs. Every query is limited to one organization, except those for callbacks and tasks. */
import type { PROVIDER_MODES, ProviderKind } from "../../bus/messages/provider-configs.ts";
import type { Json, Queryable, Transaction } from "../../db/pool.ts";

export interface ConfigRow {
  readonly config_id: number;
  readonly organization_id: number;
  readonly filial_id: number;
  readonly kind: ProviderKind;
  readonly mode: (typeof PROVIDER_MODES)[number];
  readonly name: string;
  readonly status: "active" | "disabled";
  readonly settings: Record<string, unknown>;
  readonly created_at: Date;
}

interface ConfigKey {
  readonly organizationId: number;
  readonly configId: number;
}

export async function findConfig(sql: Queryable, key: ConfigKey, lock = sql``): Promise<ConfigRow | undefined> {
  const [row] = await sql<ConfigRow[]>`
    select * from provider_configs where organization_id = ${key.organizationId} and config_id = ${key.configId} ${lock}`;
  return row;
}

/** Finds a config for a task about one of its payments. */
export async function findConfigById(sql: Queryable, configId: number): Promise<ConfigRow | undefined> {
  const [row] = await sql<ConfigRow[]>`select * from provider_configs where config_id = ${configId}`;
  return row;
}

/** Finds configs for callbacks: the signature shows which config a callback belongs to. */
export async function listConfigsById(sql: Queryable, configIds: readonly number[]): Promise<ConfigRow[]> {
  return sql<ConfigRow[]>`select * from provider_configs where config_id = any(${[...configIds]}::bigint[])`;
}

/** Ids of configs of all organizations, ascending, after this id. */
export async function listConfigIdsAfter(sql: Queryable, afterId: number, limit: number): Promise<number[]> {
  const rows = await sql<{ config_id: number }[]>`
    select config_id from provider_configs where config_id > ${afterId} order by config_id limit ${limit}`;
  return rows.map((row) => row.config_id);
}

/** The config, locked until the transaction ends. */
export const lockConfig = async (tx: Transaction, key: ConfigKey): Promise<ConfigRow | undefined> =>
  await findConfig(tx, key, tx`for update`);

/** The config, if this station may use it for a new payment now. */
export async function findUsableConfig(
  sql: Queryable,
  asked: ConfigKey & { readonly stationId: number },
): Promise<ConfigRow | undefined> {
  const [row] = await sql<ConfigRow[]>`
    select c.* from provider_configs c
    join stations s on s.organization_id = c.organization_id and s.filial_id = c.filial_id
    where c.organization_id = ${asked.organizationId} and c.config_id = ${asked.configId} and c.status = 'active'
      and s.station_id = ${asked.stationId} and s.sandbox = (c.mode = 'test')`;
  return row;
}

/** The organization's configs, or those of one of its filials, by id. */
export async function listProviderConfigs(
  sql: Queryable,
  filter: {
    readonly organizationId: number;
    readonly filialId: number | undefined;
    readonly sinceId: number | undefined;
    readonly limit: number;
  },
): Promise<ConfigRow[]> {
  const { organizationId, sinceId = 0, limit } = filter;
  const ofFilial = filter.filialId === undefined ? sql`` : sql`and filial_id = ${filter.filialId}`;
  return sql<ConfigRow[]>`
    select * from provider_configs where organization_id = ${organizationId} and config_id > ${sinceId} ${ofFilial}
    order by config_id limit ${limit}`;
}

export async function countConfigs(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from provider_configs where organization_id = ${organizationId}`;
  return row.count;
}

interface NewConfig {
  readonly organizationId: number;
  readonly filialId: number;
  readonly kind: ConfigRow["kind"];
  readonly mode: ConfigRow["mode"];
  readonly name: string;
  readonly settings: Readonly<Record<string, unknown>>;
}

export async function createProviderConfig(sql: Transaction, config: NewConfig): Promise<ConfigRow> {
  const { organizationId, filialId, kind, mode, name, settings } = config;
  const [row] = await sql<[ConfigRow]>`
    insert into provider_configs (organization_id, filial_id, kind, mode, name, settings)
    values (${organizationId}, ${filialId}, ${kind}, ${mode}, ${name}, ${sql.json(settings as Json)})
    returning *`;
  return row;
}

export async function changeProviderConfig(
  sql: Transaction,
  configId: number,
  next: Pick<ConfigRow, "name" | "settings" | "status">,
): Promise<ConfigRow> {
  const [row] = await sql<[ConfigRow]>`
    update provider_configs set name = ${next.name}, status = ${next.status}, settings = ${sql.json(next.settings as Json)}
    where config_id = ${configId} returning *`;
  return row;
}

/** Whether a sandbox that is not deleted uses the config. */
export async function isUsedBySandbox(sql: Transaction, configId: number): Promise<boolean> {
  const rows = await sql`select from sandboxes where config_id = ${configId} and deleted_at is null limit 1`;
  return rows.length > 0;
}

/** Whether the config got another status at that time or later, as the audit log has it. */
export async function hasMovedSince(
  sql: Transaction,
  config: { readonly organizationId: number; readonly configId: number; readonly sinceMs: number },
): Promise<boolean> {
  const rows = await sql`
    select from provider_events
    where organization_id = ${config.organizationId} and subject_kind = 'provider_config'
      and subject_id = ${config.configId} and action = 'provider_config_changed' and data ? 'status'
      and at >= to_timestamp(${config.sinceMs}::float8 / 1e3::float8)
    limit 1`;
  return rows.length > 0;
}

/** The filial's active config of that mode, or undefined. */
export async function findActiveConfig(
  sql: Queryable,
  place: { readonly filialId: number; readonly mode: ConfigRow["mode"] },
): Promise<{ readonly config_id: number } | undefined> {
  const [row] = await sql<{ config_id: number }[]>`
    select config_id from provider_configs
    where filial_id = ${place.filialId} and mode = ${place.mode} and status = 'active'`;
  return row;
}

/** The newest disabled config of the sandbox provider at the filial that still has its secrets (a key may have been lost). */
export async function findDisabledSandboxConfig(sql: Queryable, filialId: number): Promise<number | undefined> {
  const [row] = await sql<{ config_id: number }[]>`
    select config_id from provider_configs c
    where filial_id = ${filialId} and kind = 'sandbox' and mode = 'test' and status = 'disabled'
      and 2 = (
        select count(distinct s.name) from provider_secrets s
        where s.config_id = c.config_id and s.name in ('api_key', 'callback_secret')
          and (s.expires_at is null or s.expires_at > now()))
    order by config_id desc limit 1`;
  return row?.config_id;
}
