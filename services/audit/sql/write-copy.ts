/** Writing the audit copy. One SQL operation per function, a whole batch each; repeating one changes nothing. */
import type { Transaction } from "../../db/pool.ts";
import type { BatchRows } from "../copy/batch-rows.ts";
import { jsonbText } from "../copy/stored-json.ts";

/** The newest version copied of each of these stations. */
export async function selectHeads(sql: Transaction, stationIds: readonly number[]): Promise<Map<number, number>> {
  const rows = await sql<{ station_id: number; version: number }[]>`
    select station_id, version from audit_heads where station_id = any(${[...stationIds]}::bigint[])`;
  return new Map(rows.map((row) => [row.station_id, row.version]));
}

export async function insertEvents(sql: Transaction, events: BatchRows["events"]): Promise<void> {
  if (events.length === 0) return;
  await sql`
    insert into station_events (station_id, version, ordinal, organization_id, intent_id, at, type, actor_kind,
                                actor_id, actor_name, data, machine_version, stream_sequence)
    select station_id, version, ordinal, organization_id, intent_id, to_timestamp(at_ms / 1000.0), type, actor_kind,
           actor_id, actor_name, data, machine_version, stream_sequence
    from jsonb_to_recordset(${jsonbText(events)}::text::jsonb) as r (
      station_id bigint, version bigint, ordinal integer, organization_id bigint, intent_id bigint,
      at_ms double precision, type text, actor_kind text, actor_id bigint, actor_name text, data jsonb,
      machine_version integer, stream_sequence bigint)
    on conflict (station_id, version, ordinal) do nothing`;
}

export async function insertCommands(sql: Transaction, commands: BatchRows["commands"]): Promise<void> {
  if (commands.length === 0) return;
  await sql`
    insert into station_commands (station_id, command_id, version, at, response)
    select station_id, command_id, version, to_timestamp(at_ms / 1000.0), response
    from jsonb_to_recordset(${JSON.stringify(commands)}::text::jsonb) as r (
      station_id bigint, command_id text, version bigint, at_ms double precision, response text)
    on conflict (station_id, command_id) do nothing`;
}

export async function upsertIntents(sql: Transaction, intents: BatchRows["intents"]): Promise<void> {
  if (intents.length === 0) return;
  await sql`
    insert into intent_history as known (intent_id, station_id, organization_id, version, at, intent)
    select intent_id, station_id, organization_id, version, to_timestamp(at_ms / 1000.0), intent
    from jsonb_to_recordset(${JSON.stringify(intents)}::text::jsonb) as r (
      intent_id bigint, station_id bigint, organization_id bigint, version bigint, at_ms double precision, intent text)
    on conflict (intent_id) do update set version = excluded.version, at = excluded.at, intent = excluded.intent
    where known.version < excluded.version`;
}

export async function upsertHeads(sql: Transaction, heads: BatchRows["heads"]): Promise<void> {
  if (heads.length === 0) return;
  await sql`
    insert into audit_heads (station_id, version, log_version)
    select station_id, version, log_version
    from jsonb_to_recordset(${JSON.stringify(heads)}::text::jsonb) as r (station_id bigint, version bigint, log_version bigint)
    on conflict (station_id) do update set version = excluded.version, log_version = excluded.log_version`;
}

/** The log that is copied from now on is another one: how far its stations are copied is not known yet. */
export async function resetLogVersions(sql: Transaction): Promise<void> {
  await sql`update audit_heads set log_version = 0`;
}
