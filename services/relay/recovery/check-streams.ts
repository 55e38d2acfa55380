/**
 * Checks whether a stream still has what it had (design §3). A server that was killed may come back with an older end of a
 * stream, and may have gone on from there before the check. So the check compares the number of the newest message, and
 * also when the message with that number was stored.
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  type StoredMsg,
  type StreamInfo,
} from "@nats-io/jetstream";
import { type BucketDefinition, CREDENTIALS, SESSIONS, type StationLogs, SWITCHES } from "../../bus/streams.ts";
import type { OutboxRow } from "../../db/outbox.ts";
import { subjectOf } from "../buckets.ts";
import { RELAY_LIMITS } from "../limits.ts";
import { ANNOUNCED_PARTS, type AnnouncedPart, type DeliveredRow, type Mark, type Noted } from "../sql/bus-state.ts";

/** Where each part is stored; null for the station logs. */
export const BUCKET_OF_PART: Readonly<Record<AnnouncedPart, BucketDefinition | null>> = {
  stations: null,
  credentials: CREDENTIALS,
  sessions: SESSIONS,
  switches: SWITCHES,
};

/**
 * The streams whose content PostgreSQL knows, each with the part that is announced again when the stream has lost something.
 * Heartbeats come again by themselves, and leases are void after seconds.
 */
export function watchedStreams(logs: StationLogs): readonly { readonly name: string; readonly part: AnnouncedPart }[] {
  return ANNOUNCED_PARTS.flatMap((part) => {
    const bucket = BUCKET_OF_PART[part];
    return bucket === null ? logs.all.map(({ name }) => ({ name, part })) : [{ name: `KV_${bucket.name}`, part }];
  });
}

export class NoStreamError extends Error {
  constructor(stream: string) {
    super(`The bus has no stream ${stream}: run \`npm run migrate\`.`);
    this.name = "NoStreamError";
  }
}

/** The newest message that the stream has now. */
export function markOf({ config, created, state }: StreamInfo): Mark {
  return { stream: config.name, created, sequence: state.last_seq, stored: state.last_ts };
}

/** The stream as it is now; undefined when there is none of that name. */
export async function streamInfo(jsm: JetStreamManager, name: string): Promise<StreamInfo | undefined> {
  return await jsm.streams.info(name).catch((error: unknown) => {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined;
    throw error;
  });
}

/** What a stream is known to have had. */
interface Known {
  readonly mark: Mark | undefined;
  readonly noted: Noted | undefined;
  readonly logs: StationLogs;
}

/** The newest sequence that the stream is known to have had. */
export const knownSequence = ({ mark, noted }: Pick<Known, "mark" | "noted">): number =>
  Math.max(mark?.sequence ?? 0, noted?.sequence ?? 0);

/**
 * The stream as it is now, and whether it has lost anything of what was known. A leader that was elected a moment ago may
 * not have applied all that it has, and seems to have lost it: only what the leader confirms after a while counts. What the
 * leader applies meanwhile was stored before the first check; what was stored since comes from readers' beats, for example.
 */
export async function checkStream(
  jsm: JetStreamManager,
  first: StreamInfo,
  known: Known,
): Promise<{ readonly info: StreamInfo; readonly isLost: boolean }> {
  let info = first;
  const isMissing = async (): Promise<boolean> =>
    (await hasLost(jsm, info, known)) || (info !== first && (await hasGrownSince(jsm, first, known)));
  for (let times = 1; await isMissing(); times += 1) {
    const isNew = known.mark === undefined && info.state.last_seq === 0;
    if (isNew || times === RELAY_LIMITS.lossConfirmations) return { info, isLost: true };
    await delay(RELAY_LIMITS.lossConfirmMs);
    const again = await streamInfo(jsm, first.config.name);
    if (again === undefined) throw new NoStreamError(first.config.name);
    info = again;
  }
  return { info, isLost: false };
}

/** The stream, with the server's own time of the answer, which the client's types lack. */
type TimedInfo = StreamInfo & { readonly ts?: string };

/** Whether the numbers that the stream is known to have had were given out again since the first check. */
async function hasGrownSince(jsm: JetStreamManager, { config, ts }: TimedInfo, known: Known): Promise<boolean> {
  const newest = await newestUpTo(jsm, { stream: config.name, sequence: knownSequence(known) });
  return ts !== undefined && newest !== undefined && newest.time.getTime() > Date.parse(ts);
}

/**
 * Whether the stream has lost anything of what was known of it. That the marked message is gone proves nothing: a newer
 * message of its subject, an age limit or a removal takes it away. Any of these proves a lost end:
 *
 * - the stream was created again, or its last number is lower than one that is known
 * - the newest row that was delivered to it is gone, and its subject has no newer message: the lost numbers may have been given
 *   out again meanwhile, to the beats of readers alone
 * - the marked number has a message that was stored at another time
 * - the newest message below the marked number was stored after the marked one: a stream that lost its end gave the lost
 *   numbers out again
 */
export async function hasLost(
  jsm: JetStreamManager,
  { config, created, state }: StreamInfo,
  { mark, noted, logs }: Known,
): Promise<boolean> {
  if (state.last_seq < (noted?.sequence ?? 0)) return true;
  if (noted?.delivered !== undefined && !(await hasRow(jsm, config.name, logs, noted.delivered))) return true;
  // Without a mark, an empty stream is new, and a stream with messages was in use before.
  if (mark === undefined) return state.last_seq === 0;
  if (created !== mark.created || state.last_seq < mark.sequence) return true;
  if (mark.sequence === 0 || (state.last_seq === mark.sequence && state.last_ts === mark.stored)) return false;
  const newest = await newestUpTo(jsm, mark);
  if (newest === undefined) return false;
  if (newest.seq === mark.sequence) return newest.timestamp !== mark.stored;
  return newest.time.getTime() > Date.parse(mark.stored);
}

async function hasRow(
  jsm: JetStreamManager,
  stream: string,
  logs: StationLogs,
  { row, sequence }: DeliveredRow,
): Promise<boolean> {
  const subject = subjectOfRow(row, logs);
  if (subject === undefined) return true;
  const newest = await jsm.streams.getMessage(stream, { last_by_subj: subject });
  return newest !== null && newest.seq >= sequence;
}

/** Where a row is stored in a stream of `watchedStreams`; undefined for an event, which no such stream has. */
function subjectOfRow(row: OutboxRow, logs: StationLogs): string | undefined {
  switch (row.kind) {
    case "station_command":
      return logs.subject(row.stationId);
    case "credential_put":
    case "credential_delete":
      return subjectOf(CREDENTIALS, row.hash);
    case "session_put":
    case "session_delete":
      return subjectOf(SESSIONS, row.hash);
    case "switch_set":
      return subjectOf(SWITCHES, row.entry.key);
    case "robotics_event":
    case "issue_event":
      return undefined;
  }
}

/**
 * Whether a log was purged. The log keeps each station's newest commit for good, and the audit copy has commits of
 * `stationIds`. So the log was purged if it has no commit of the first few of them that are its stations. One missing
 * station proves nothing, because it may not be restored yet after an earlier loss.
 */
export async function isLogPurged(
  jsm: JetStreamManager,
  logs: StationLogs,
  { stream, stationIds }: { readonly stream: string; readonly stationIds: readonly number[] },
): Promise<boolean> {
  const ofLog = stationIds.filter((stationId) => logs.of(stationId).name === stream);
  const asked = ofLog.slice(0, RELAY_LIMITS.askedStations);
  for (const stationId of asked) {
    if ((await jsm.streams.getMessage(stream, { last_by_subj: logs.subject(stationId) })) !== null) return false;
  }
  return asked.length > 0;
}

/**
 * The newest message that the stream has at the marked number or below it. The server only finds the first message at a
 * number or above it, so this halves the range; 2^40 numbers take 40 requests.
 */
async function newestUpTo(
  jsm: JetStreamManager,
  { stream, sequence }: Pick<Mark, "stream" | "sequence">,
): Promise<StoredMsg | undefined> {
  let newest: StoredMsg | undefined;
  let fromSequence = sequence;
  let lowest = 1;
  let highest = sequence;
  while (lowest <= highest) {
    const request = { seq: fromSequence, next_by_subj: ">" };
    const message = await jsm.streams.getMessage(stream, request);
    if (message === null || message.seq > sequence) highest = fromSequence - 1;
    else {
      newest = message;
      lowest = message.seq + 1;
    }
    fromSequence = lowest + Math.floor((highest - lowest) / 2);
  }
  return newest;
}
