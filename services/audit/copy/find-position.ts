/**
 * Where the copy can go on from: the end of what the stream and the copy have in common. A stream that has lost its end
 * (its data folder was restored from an older copy, or the server does not sync what it acknowledges) may have gone on
 * since, with other commits in the same places, so places are compared by what is stored in them.
 */
import type { StoredMsg } from "@nats-io/jetstream";
import { STATION_LOG } from "../../bus/streams.ts";
import { STATION_LOG_ALL } from "../../bus/subjects.ts";
import type { AuditDeps } from "../deps.ts";
import { hasCopied } from "../sql/log-losses.ts";
import { readCommit } from "./read-commit.ts";

/** The position itself while the stream still has what was copied last, else an earlier one; zero for a new stream. */
export async function findSharedPosition(deps: AuditDeps, position: number): Promise<number> {
  if (position === 0) return 0;
  const { state } = await deps.bus.jsm.streams.info(STATION_LOG.name);
  if (state.last_seq >= position) {
    const newest = await deps.bus.jsm.streams.getMessage(STATION_LOG.name, { seq: position });
    if (newest !== null && (await isCopied(deps, newest))) return position;
  }
  // Whatever is common comes first and whatever is not comes after it, so the end is found by halving.
  let known = 0;
  let most = Math.min(position, state.last_seq);
  while (known < most) {
    const middle = known + Math.ceil((most - known) / 2);
    const message = await nextMessage(deps, middle);
    if (message !== null && message.seq <= most && (await isCopied(deps, message))) known = message.seq;
    else most = middle - 1;
  }
  return known;
}

/** The first message at this place or behind it: places of messages that made room for newer ones are empty. */
async function nextMessage({ bus }: AuditDeps, sequence: number): Promise<StoredMsg | null> {
  const query = { seq: sequence, next_by_subj: STATION_LOG_ALL };
  return await bus.jsm.streams.getMessage(STATION_LOG.name, query);
}

async function isCopied({ database }: AuditDeps, message: StoredMsg): Promise<boolean> {
  const commit = readCommit(message);
  if (commit === undefined) return false;
  const { atMs, state } = commit;
  return await hasCopied(database, { stationId: state.stationId, streamSequence: message.seq, atMs });
}
