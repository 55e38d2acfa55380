/** Writing the audit copy. One SQL operation per function, a whole batch each; repeating one changes nothing. */
import type { Transaction } from "../../db/pool.ts";
import { storedJson } from "../../db/stored-text.ts";
import type { BatchRows, TrailHead } from "../copy/batch-rows.ts";

/** How far the trail of each of these stations has come. */
export async function selectHeads(sql: Transaction, stationIds: readonly number[]): Promise<Map<number, TrailHead>> {
  const rows = await sql<{ station_id: number; version: number; version_offset: number | null }[]>`
    select station_id, version, version_offset from audit_heads
    where station_id = any(${[...stationIds]}::bigint[])`;
  return new Map(rows.map((row) => [row.station_id, { version: row.version, offset: row.version_offset }]));
}

export async function insertEvents(sql: Transaction, events: BatchRows["events"]): Promise<void> {
  if (events.length === 0) return;
  await sql`
    insert into station_events (station_id, version, ordinal, organization_id, intent_id, at, type, actor_kind,
                                actor_id, actor_name, data, machine_version, stream_sequence)
    select station_id, version, ordinal, organization_id, intent_id, to_timestamp(at_ms / 1000.0), type, actor_kind,
           actor_id, actor_name, data, machine_version, stream_sequence
    from jsonb_to_recordset(${storedJson(events)}::text::jsonb) as r (
      station_id bigint, version bigint, ordinal integer, organization_id bigint, intent_id bigint,
      at_ms double precision, type text, actor_kind text, actor_id bigint, actor_name text, data jsonb,
      machine_version integer, stream_sequence bigint)
    on conflict (station_id, version, ordinal) do nothing`;
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
    insert into audit_heads (station_id, version, version_offset, stream_sequence)
    select station_id, version, version_offset, stream_sequence
    from jsonb_to_recordset(${JSON.stringify(heads)}::text::jsonb) as r (
      station_id bigint, version bigint, version_offset bigint, stream_sequence bigint)
    on conflict (station_id) do update
    set version = excluded.version, version_offset = excluded.version_offset,
        stream_sequence = excluded.stream_sequence`;
}
