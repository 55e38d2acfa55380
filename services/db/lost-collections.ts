/** Reads from the audit copy the collections that a station log has lost. */
import type { LostCollections, LostReason } from "../../machines/station/state.ts";
import type { Database } from "./pool.ts";

/** The newest commit of a station's log; zeros when the log has none. */
interface LogEnd {
  readonly stationId: number;
  readonly version: number;
  readonly sequence: number;
}

interface LostRow {
  readonly station_id: number;
  readonly lost: readonly LostCollections[];
}

/**
 * What the logs of these stations have lost: the contents of recorded losses, until the station has them again; and the
 * contents of a commit in the copy that is newer than the log, before the copier has recorded that loss. Without the
 * reasons of settled intents; `unclear` has only the reasons of orders that are still open.
 */
export async function selectLostCollections(
  database: Database,
  ends: readonly LogEnd[],
): Promise<ReadonlyMap<number, LostCollections>> {
  const rows = await database<LostRow[]>`
    select h.station_id, h.lost_collections || case
        when h.collections is not null and (h.version - h.version_offset > e.version or h.stream_sequence > e.sequence)
        then jsonb_build_array(h.collections) else '[]' end as lost
    from audit_heads h join jsonb_to_recordset(${JSON.stringify(ends.map(({ stationId, version, sequence }) => ({ stationId, version, sequence })))}::text::jsonb) as e (
      "stationId" bigint, version bigint, sequence bigint) on e."stationId" = h.station_id`;
  const merged = rows.flatMap(({ station_id: stationId, lost }) =>
    lost.length === 0 ? [] : [[stationId, merge(lost)] as const],
  );
  const reasons = merged.flatMap(([, lost]) => [...lost.unclear, ...lost.reasons]);
  const [open, settled] = await Promise.all([
    selectOpen(database, [...new Set(reasons.map(({ orderId }) => orderId))]),
    selectSettled(database, [...new Set(reasons.map(({ intentId }) => intentId))]),
  ]);
  const isUnpaid = ({ intentId }: LostReason): boolean => !settled.has(intentId);
  return new Map(
    merged.map(([stationId, lost]) => {
      const unclear = lost.unclear.filter((reason) => isUnpaid(reason) && open.has(reason.orderId));
      return [stationId, { ...lost, unclear, reasons: lost.reasons.filter(isUnpaid) }];
    }),
  );
}

/** Merges several losses. Of two equal reasons the newest counts. */
function merge(lost: readonly LostCollections[]): LostCollections {
  const unclear = new Map(lost.flatMap((one) => one.unclear).map((one) => [`${one.intentId} ${one.reason}`, one]));
  const reasons = new Map(lost.flatMap((one) => one.reasons).map((one) => [one.intentId, one]));
  return {
    unclear: [...unclear.values()],
    reasons: [...reasons.values()],
    unclearThrough: Math.max(0, ...lost.map(({ unclearThrough }) => unclearThrough)),
    nextIntentNumber: Math.max(1, ...lost.map(({ nextIntentNumber }) => nextIntentNumber)),
    lastReasonNumber: Math.max(0, ...lost.map(({ lastReasonNumber = 0 }) => lastReasonNumber)),
  };
}

async function selectOpen(database: Database, orderIds: readonly number[]): Promise<ReadonlySet<number>> {
  if (orderIds.length === 0) return new Set();
  const rows = await database<{ order_id: number }[]>`
    select order_id from orders where order_id = any(${[...orderIds]}::bigint[]) and status = 'open'`;
  return new Set(rows.map((row) => row.order_id));
}

async function selectSettled(database: Database, intentIds: readonly number[]): Promise<ReadonlySet<number>> {
  if (intentIds.length === 0) return new Set();
  const rows = await database<{ intent_id: number }[]>`
    select intent_id from transactions where intent_id = any(${[...intentIds]}::bigint[])`;
  return new Set(rows.map((row) => row.intent_id));
}
