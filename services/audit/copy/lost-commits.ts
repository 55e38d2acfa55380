/**
 * Finds and records what the station log has lost: its data folder was restored from an older copy, or the server does not
 * sync what it acknowledges. The copier then continues after the last commit that the log and the copy have in common. It
 * deletes and overwrites nothing in the copy: each station that has lost commits gets one event that names them, and the
 * station's next commits continue after that event.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { StoredMsg } from "@nats-io/jetstream";
import type { StationState } from "../../../machines/station/state.ts";
import type { StationLogDefinition } from "../../bus/streams.ts";
import type { AuditDeps } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import {
  type CommitRange,
  type Hold,
  insertLoss,
  isCommitCopied,
  moveHeadsBack,
  movePosition,
  movePositionBack,
  selectCopiedBehind,
  selectStationsBehind,
  upsertIntents,
} from "../sql/copy.ts";
import { endLostPayments, upsertPayments } from "../sql/payments.ts";
import { paymentRow } from "./payment-rows.ts";
import { intentRow, intentsOf, readCommit } from "./rows.ts";

export interface LossDeps extends AuditDeps {
  /** The copy lacks older events: that shows no loss. */
  readonly eventRetentionDays: number;
}

interface Start {
  readonly log: StationLogDefinition;
  readonly hold: Hold;
  /** The sequence up to which everything is copied. */
  readonly position: number;
}

/**
 * The position from which a copier continues. First records which copied commits the log has lost. Throws `HoldLostError`,
 * and an error when the log's leader does not answer.
 */
export async function startingPosition(deps: LossDeps, start: Start, signal: AbortSignal): Promise<number> {
  const { hold, position } = start;
  const common = await confirmedPosition(deps, start, signal);
  if (common === position) return position;
  const facts = { stream: hold.stream, position, commonPosition: common };
  deps.log.error(facts, "the station log has lost commits that its audit copy has");
  for (const lost of await recordLosses(deps, start, common)) deps.log.error(lost, "a station has lost commits");
  await deps.database.begin((sql) => movePositionBack(sql, hold, { from: position, to: common }));
  return common;
}

/**
 * A newly elected leader may not have applied all its messages yet, and then seems to have lost some. So only a position that
 * the leader confirms after a while counts.
 */
async function confirmedPosition(deps: LossDeps, start: Start, signal: AbortSignal): Promise<number> {
  let found = await findCommonPosition(deps, start);
  for (let times = 1; found !== start.position && times < AUDIT_LIMITS.lossConfirmations; times += 1) {
    await pause(AUDIT_LIMITS.lossConfirmMs, undefined, { signal });
    const again = await findCommonPosition(deps, start);
    if (again !== found) times = 0;
    found = again;
  }
  return found;
}

/**
 * The position itself if the stream still has the last copied commit, otherwise an earlier one; zero for a new stream. The
 * stream may have other commits at the same sequences by now, so this compares the commits and not only their sequences.
 */
async function findCommonPosition(deps: LossDeps, { log, position }: Start): Promise<number> {
  if (position === 0) return 0;
  const { state } = await deps.jsm.streams.info(log.name);
  if (state.last_seq >= position) {
    const newest = await deps.jsm.streams.getMessage(log.name, { seq: position });
    // A message that is no commit proves nothing: it is never copied.
    if (newest !== null && (readCommit(newest) === undefined || (await isCopied(deps, newest)))) return position;
  }
  // All common commits come before all others, so a binary search finds the last common one.
  let known = 0;
  let most = Math.min(position, state.last_seq);
  while (known < most) {
    const middle = known + Math.ceil((most - known) / 2);
    const message = await nextMessage(deps, log, middle);
    if (message !== null && message.seq <= most && (await isCopied(deps, message))) known = message.seq;
    else most = middle - 1;
  }
  // If nothing is stored between `known` and the position, newer commits have replaced those, and nothing is lost.
  if (state.last_seq >= position) {
    const next = await nextMessage(deps, log, known + 1);
    if (next === null || next.seq > position) return position;
  }
  return known;
}

/** The first commit at this sequence or after it: the log no longer has the commits that newer ones have replaced. */
async function nextMessage({ jsm }: AuditDeps, log: StationLogDefinition, sequence: number): Promise<StoredMsg | null> {
  const query = { seq: sequence, next_by_subj: log.commits };
  return await jsm.streams.getMessage(log.name, query);
}

async function isCopied({ database, eventRetentionDays }: LossDeps, message: StoredMsg): Promise<boolean> {
  const commit = readCommit(message);
  if (commit === undefined) return false;
  const { atMs, state } = commit;
  const copied = { stationId: state.stationId, streamSequence: message.seq, atMs };
  return await isCommitCopied(database, copied, eventRetentionDays);
}

/**
 * Records the copied commits after `sequence` that the log has lost, one station after another, and returns them. Each
 * transaction requires the hold. When the copier dies in between, its successor records the rest.
 */
async function recordLosses(deps: AuditDeps, start: Start, sequence: number): Promise<readonly CommitRange[]> {
  const { hold, position } = start;
  const losses: CommitRange[] = [];
  for (let sinceId = 0; ; ) {
    const page = { sequence, sinceId, limit: AUDIT_LIMITS.lossStations };
    const behind = await selectStationsBehind(deps.database, page);
    const last = behind.at(-1);
    if (last === undefined) return losses;
    sinceId = last;
    // The sequence belongs to this log, so it means nothing for the stations of other logs.
    const stationIds = behind.filter((stationId) => deps.logs.of(stationId).name === start.log.name);
    for (const { offset, ...copied } of await selectCopiedBehind(deps.database, { sequence, stationIds })) {
      if (!(await isLost(deps, copied, { sequence, offset }))) continue;
      await recordLoss(deps, start, copied);
      losses.push(copied);
    }
    await deps.database.begin(async (sql) => {
      await movePosition(sql, hold, { from: position, to: position });
      await moveHeadsBack(sql, { stationIds, sequence });
    });
  }
}

/**
 * Whether the log has lost these commits. When newer commits have replaced them, the station's next message is a later commit.
 * After a loss there is no next message, or it is a commit with a version that a lost commit had.
 */
async function isLost(
  { jsm, logs }: AuditDeps,
  { stationId, toVersion }: CommitRange,
  { sequence, offset }: { readonly sequence: number; readonly offset: number },
): Promise<boolean> {
  const query = { seq: sequence + 1, next_by_subj: logs.subject(stationId) };
  const next = await jsm.streams.getMessage(logs.of(stationId).name, query);
  const commit = next === null ? undefined : readCommit(next);
  return commit === undefined || commit.version + offset <= toVersion;
}

/** Records the loss of one station. Intents that the log still has become as in the log; all others stay as in the lost commits. */
async function recordLoss(deps: AuditDeps, { hold, position }: Start, lost: CommitRange): Promise<void> {
  const state = await stateInLog(deps, lost.stationId);
  const intents = state === undefined ? [] : intentsOf(state);
  const atMs = deps.bus.clock.nowMs();
  await deps.database.begin(async (sql) => {
    await movePosition(sql, hold, { from: position, to: position });
    const version = await insertLoss(sql, lost, atMs);
    const place = { ...lost, version, atMs };
    await upsertIntents(
      sql,
      intents.map((intent) => intentRow(place, intent)),
    );
    const payments = state === undefined ? [] : intents.map((intent) => paymentRow(place, intent, state));
    await upsertPayments(sql, payments);
    await endLostPayments(sql, lost, atMs);
  });
}

async function stateInLog({ jsm, logs }: AuditDeps, stationId: number): Promise<StationState | undefined> {
  const query = { last_by_subj: logs.subject(stationId) };
  const newest = await jsm.streams.getMessage(logs.of(stationId).name, query);
  return newest === null ? undefined : readCommit(newest)?.state;
}
