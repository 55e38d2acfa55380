/** The audit copy for the final check: the events of each intent with their commits. */
import type postgres from "postgres";

export interface AuditEvent {
  readonly version: number;
  readonly type: string;
  readonly intentId: number | null;
}

/** The audit copy's events by station, in their order. */
export async function readAuditLog(sql: postgres.Sql): Promise<ReadonlyMap<number, readonly AuditEvent[]>> {
  const rows = await sql<{ station_id: string; version: string; type: string; intent_id: string | null }[]>`
    select station_id, version, type, intent_id from station_events order by station_id, version, ordinal`;
  const auditLog = new Map<number, AuditEvent[]>();
  for (const row of rows) {
    const events = auditLog.get(Number(row.station_id)) ?? [];
    auditLog.set(Number(row.station_id), events);
    const intentId = row.intent_id === null ? null : Number(row.intent_id);
    events.push({ version: Number(row.version), type: row.type, intentId });
  }
  return auditLog;
}
