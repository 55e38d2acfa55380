/**
 * Where the copy can go on from: the end of what the stream and the copy have in common. A stream that has lost its end
 * (its data folder was restored from an older copy, or the server does not sync what it acknowledges) may have gone on
 * since, with other commits in the same places, so places are compared by what is stored in them.
 */
import type { StoredMsg } from "@nats-io/jetstream";
import type { AuditDeps, AuditedLog } from "../deps.ts";
import { hasCopied } from "../sql/log-losses.ts";
import { readCommit } from "./read-commit.ts";

/** The position itself while the stream still has what was copied last, else an earlier one; zero for a new stream. */
export async function findSharedPosition(deps: AuditDeps, log: AuditedLog, position: number): Promise<number> {
  if (position === 0) return 0;
  const { state } = await deps.jsm.streams.info(log.name);
  if (state.last_seq >= position) {
    const newest = await deps.jsm.streams.getMessage(log.name, { seq: position });
    // What is no commit shows nothing: it is not in the copy in any case.
    if (newest !== null && (readCommit(newest) === undefined || (await isCopied(deps, newest)))) return position;
  }
  // Whatever is common comes first and whatever is not comes after it, so the end is found by halving.
  let known = 0;
  let most = Math.min(position, state.last_seq);
  while (known < most) {
    const middle = known + Math.ceil((most - known) / 2);
    const message = await nextMessage(deps, log, middle);
    if (message !== null && message.seq <= most && (await isCopied(deps, message))) known = message.seq;
    else most = middle - 1;
  }
  // Where nothing is stored between the two, commits have only made room for newer ones.
  if (state.last_seq >= position) {
    const next = await nextMessage(deps, log, known + 1);
    if (next === null || next.seq > position) return position;
  }
  return known;
}

/** The first message at this place or behind it: places of messages that made room for newer ones are empty. */
async function nextMessage(
  { jsm }: AuditDeps,
  { name, commits }: AuditedLog,
  sequence: number,
): Promise<StoredMsg | null> {
  const query = { seq: sequence, next_by_subj: commits };
  return await jsm.streams.getMessage(name, query);
}

async function isCopied({ database }: AuditDeps, message: StoredMsg): Promise<boolean> {
  const commit = readCommit(message);
  if (commit === undefined) return false;
  const { atMs, state } = commit;
  return await hasCopied(database, { stationId: state.stationId, streamSequence: message.seq, atMs });
}
