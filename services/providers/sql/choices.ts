/** Which config a filial's stations use, and which stations have been told. */
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { ConfigRow } from "./configs.ts";

/**
 * The filial, held until the transaction ends; false when the organization has none such. A station that is being
 * created refers to its filial, so it is either committed and seen from here on, or created after this transaction.
 */
export async function lockFilial(
  sql: Transaction,
  key: { readonly organizationId: number; readonly filialId: number },
): Promise<boolean> {
  const rows = await sql`
    select from filials where organization_id = ${key.organizationId} and filial_id = ${key.filialId} for update`;
  return rows.count === 1;
}

/** Writes the filial's choice with its next revision and marks its stations as not told. */
export async function choose(
  sql: Transaction,
  choice: { readonly filialId: number; readonly mode: ConfigRow["mode"]; readonly configId: number | null },
): Promise<void> {
  const { filialId, mode, configId } = choice;
  await sql`
    insert into provider_choices as c (filial_id, mode, config_id) values (${filialId}, ${mode}, ${configId})
    on conflict (filial_id, mode) do update set config_id = excluded.config_id, revision = c.revision + 1`;
  await sql`
    update stations set provider_told = false where filial_id = ${filialId} and sandbox = ${mode === "test"}`;
}

export interface UntoldStation {
  readonly station_id: number;
  readonly filial_id: number;
  readonly sandbox: boolean;
}

/** Takes up to `limit` stations that have not been told, as told from now on. Others skip them until this ends. */
export async function takeUntoldStations(sql: Transaction, limit: number): Promise<UntoldStation[]> {
  return sql<UntoldStation[]>`
    update stations set provider_told = true where station_id in (
      select station_id from stations where not provider_told order by station_id limit ${limit} for update skip locked)
    returning station_id, filial_id, sandbox`;
}

export interface ChoiceRow {
  readonly filial_id: number;
  readonly mode: ConfigRow["mode"];
  readonly config_id: number | null;
  readonly revision: number;
}

/** The choices of these filials. Read after the stations were taken, so that none is older than what they must hear. */
export async function readChoices(sql: Transaction, filialIds: readonly number[]): Promise<ChoiceRow[]> {
  return sql<ChoiceRow[]>`
    select filial_id, mode, config_id, revision from provider_choices
    where filial_id = any(${[...filialIds]}::bigint[])`;
}

/** Up to `limit` stations that use the filial's choice of that mode. */
export async function listStationIds(
  sql: Queryable,
  place: { readonly filialId: number; readonly mode: ConfigRow["mode"] },
  limit: number,
): Promise<number[]> {
  const rows = await sql<{ station_id: number }[]>`
    select station_id from stations where filial_id = ${place.filialId} and sandbox = ${place.mode === "test"}
    order by station_id limit ${limit}`;
  return rows.map((row) => row.station_id);
}

/** Whether an outbox row of one of the place's stations waits for the relay. */
export async function hasUndeliveredStation(
  sql: Queryable,
  place: { readonly filialId: number; readonly mode: ConfigRow["mode"] },
): Promise<boolean> {
  const [row] = await sql<[{ waits: boolean }]>`
    select exists (
      select 1 from outbox where delivered_at is null and key in (
        select 'station.' || station_id from stations
        where filial_id = ${place.filialId} and sandbox = ${place.mode === "test"})
    ) as waits`;
  return row.waits;
}
