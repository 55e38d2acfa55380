/**
 * What a copier does when the station log has lost its end: its data folder was restored from an older copy, or the server
 * does not sync what it acknowledges. The copier goes on from the end of what the log and the copy have in common. It drops
 * and overwrites nothing in the copy: each station that lost commits gets one event that names them, and its next commits
 * continue behind that event.
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
import { expireLostPayments, upsertPayments } from "../sql/payments.ts";
import { paymentRow } from "./payment-rows.ts";
import { intentRow, intentsOf, readCommit } from "./rows.ts";

export interface Start {
  readonly log: StationLogDefinition;
  readonly hold: Hold;
  /** Up to which sequence everything is copied. */
  readonly position: number;
}

/**
 * The position from which a copier copies; records first what the log has lost of the copy. Throws `HoldLostError`, and
 * an error when the log's leader does not answer.
 */
export async function startingPosition(deps: AuditDeps, start: Start, signal: AbortSignal): Promise<number> {
  const { hold, position } = start;
  const shared = await confirmedPosition(deps, start, signal);
  if (shared === position) return position;
  const facts = { stream: hold.stream, position, sharedPosition: shared };
  deps.log.error(facts, "the station log has lost commits that its audit copy has");
  for (const lost of await recordLosses(deps, start, shared)) deps.log.error(lost, "a station has lost commits");
  await deps.database.begin((sql) => movePositionBack(sql, hold, { from: position, to: shared }));
  return shared;
}

/**
 * A leader that was elected a moment ago may not have applied all that it has, and seems to have lost it: only a position
 * that the leader confirms after a while counts.
 */
async function confirmedPosition(deps: AuditDeps, start: Start, signal: AbortSignal): Promise<number> {
  let found = await findSharedPosition(deps, start);
  for (let times = 1; found !== start.position && times < AUDIT_LIMITS.lossConfirmations; times += 1) {
    await pause(AUDIT_LIMITS.lossConfirmMs, undefined, { signal });
    const again = await findSharedPosition(deps, start);
    if (again !== found) times = 0;
    found = again;
  }
  return found;
}

/**
 * The position itself while the stream still has what was copied last, else an earlier one; zero for a new stream. A
 * stream may have other commits in the same places since, so places are compared by what is stored in them.
 */
async function findSharedPosition(deps: AuditDeps, { log, position }: Start): Promise<number> {
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

/** The first message at this place or behind it: places of messages that newer ones replaced are empty. */
async function nextMessage({ jsm }: AuditDeps, log: StationLogDefinition, sequence: number): Promise<StoredMsg | null> {
  const query = { seq: sequence, next_by_subj: log.commits };
  return await jsm.streams.getMessage(log.name, query);
}

async function isCopied({ database }: AuditDeps, message: StoredMsg): Promise<boolean> {
  const commit = readCommit(message);
  if (commit === undefined) return false;
  const { atMs, state } = commit;
  return await isCommitCopied(database, { stationId: state.stationId, streamSequence: message.seq, atMs });
}

/**
 * Records what is copied and lost behind `sequence`, one station after another, and returns it. Each transaction requires
 * the hold. A copier that dies in between leaves the rest to its successor.
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
    // A sequence is a place in one stream only.
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
 * Commits that newer ones replaced are not lost: then the station's next message is a later commit. After a loss, it is a
 * commit with a version that was used before, or there is none.
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

/** The intents that the log still has count as the log has them; the others stay as the lost commits left them. */
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
    await expireLostPayments(sql, lost, atMs);
  });
}

async function stateInLog({ jsm, logs }: AuditDeps, stationId: number): Promise<StationState | undefined> {
  const query = { last_by_subj: logs.subject(stationId) };
  const newest = await jsm.streams.getMessage(logs.of(stationId).name, query);
  return newest === null ? undefined : readCommit(newest)?.state;
}
