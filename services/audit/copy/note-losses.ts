/**
 * What becomes of the trail when the log has lost its end: nothing in it is dropped or written over. Each station that
 * lost commits gets one event that says which; its next commits continue behind that, under versions of the trail's own.
 */
import type { Transaction } from "../../db/pool.ts";
import type { AuditDeps, AuditedLog } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import {
  type CopiedBehind,
  insertLoss,
  type Loss,
  noteStationsAt,
  selectCopiedBehind,
  selectStationsBehind,
} from "../sql/log-losses.ts";
import { upsertIntents } from "../sql/write-copy.ts";
import { type IntentRow, intentsOf } from "./commit-rows.ts";
import { readCommit } from "./read-commit.ts";

export interface NoteLosses {
  readonly log: AuditedLog;
  /** What the stream still has; whatever is copied of places behind it was lost. */
  readonly sequence: number;
  readonly nowMs: number;
  /** Throws unless this copier still is the one that writes, and locks that until the transaction ends. */
  readonly fence: (sql: Transaction) => Promise<void>;
}

/**
 * Notes what the log has lost, one station after another: a copier that dies in between is succeeded by one that finds
 * the others left. Returns the losses.
 */
export async function noteLosses(deps: AuditDeps, work: NoteLosses): Promise<readonly Loss[]> {
  const { log, sequence, fence } = work;
  const losses: Loss[] = [];
  const limit = AUDIT_LIMITS.lossStations;
  for (let sinceId = 0; ; ) {
    const behind = await selectStationsBehind(deps.database, { sequence, sinceId, limit });
    const last = behind.at(-1);
    if (last === undefined) return losses;
    sinceId = last;
    // Places in other logs are of other streams.
    const stationIds = behind.filter((stationId) => deps.logs.of(stationId).name === log.name);
    for (const copied of await selectCopiedBehind(deps.database, { sequence, stationIds })) {
      if (!(await isLost(deps, sequence, copied))) continue;
      const { offset: _offset, ...loss } = copied;
      await noteLoss(deps, loss, work);
      losses.push(loss);
    }
    await deps.database.begin(async (sql) => {
      await fence(sql);
      await noteStationsAt(sql, { stationIds, sequence });
    });
  }
}

/**
 * Commits that only made room for newer ones are not lost: then the station's next message is a later commit than they.
 * After a loss it is one that has their version again, or there is none.
 */
async function isLost({ jsm, logs }: AuditDeps, sequence: number, copied: CopiedBehind): Promise<boolean> {
  const query = { seq: sequence + 1, next_by_subj: logs.subject(copied.stationId) };
  const next = await jsm.streams.getMessage(logs.of(copied.stationId).name, query);
  const commit = next === null ? undefined : readCommit(next);
  return commit === undefined || commit.version + copied.offset <= copied.toVersion;
}

async function noteLoss(deps: AuditDeps, loss: Loss, { nowMs, fence }: NoteLosses): Promise<void> {
  const intents = await intentsInLog(deps, loss.stationId);
  await deps.database.begin(async (sql) => {
    await fence(sql);
    const version = await insertLoss(sql, loss, nowMs);
    // What the log tells of an intent counts again; one that only the lost commits knew stays as they told it.
    const rows = intents.map((intent): IntentRow => {
      const { intentId: intent_id } = intent;
      const { stationId: station_id, organizationId: organization_id } = loss;
      return { intent_id, station_id, organization_id, version, at_ms: nowMs, intent: JSON.stringify(intent) };
    });
    await upsertIntents(sql, rows);
  });
}

async function intentsInLog({ jsm, logs }: AuditDeps, stationId: number) {
  const query = { last_by_subj: logs.subject(stationId) };
  const newest = await jsm.streams.getMessage(logs.of(stationId).name, query);
  const commit = newest === null ? undefined : readCommit(newest);
  return commit === undefined ? [] : intentsOf(commit.state);
}
