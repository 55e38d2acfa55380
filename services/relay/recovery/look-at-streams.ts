/**
 * Whether a stream still has what it had (design §3). A server that was killed may come back with an older end of a
 * stream, and may have gone on from there by the time that anybody looks; so not only the number of the newest message
 * is compared, but also when the message with that number was stored.
 */
import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager, type StreamInfo } from "@nats-io/jetstream";
import { CREDENTIALS, SESSIONS, STATION_LOG, SWITCHES } from "../../bus/streams.ts";
import type { AnnouncedPart } from "../sql/bus-announcements.ts";
import type { Mark } from "../sql/bus-marks.ts";

export interface WatchedStream {
  readonly name: string;
  /** What is told anew when it has lost something. */
  readonly part: AnnouncedPart;
  /** Under which name others note the sequences that they know of. */
  readonly noted: "stationLog" | "credentials" | "sessions" | "switches";
}

/**
 * The streams whose content PostgreSQL knows. Heartbeats come again by themselves, and leases are void after seconds.
 */
export const WATCHED_STREAMS: readonly WatchedStream[] = [
  { name: STATION_LOG.name, part: "stations", noted: "stationLog" },
  { name: `KV_${CREDENTIALS.name}`, part: "credentials", noted: "credentials" },
  { name: `KV_${SESSIONS.name}`, part: "sessions", noted: "sessions" },
  { name: `KV_${SWITCHES.name}`, part: "switches", noted: "switches" },
];

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

/**
 * Whether the stream has lost anything of what was known of it. Where that cannot be told any more, because the message
 * itself has made room for others, it has: telling too much anew only costs a little time.
 */
export async function hasLost(
  jsm: JetStreamManager,
  { created, state }: StreamInfo,
  known: { readonly mark: Mark | undefined; readonly notedSequence: number },
): Promise<boolean> {
  const { mark, notedSequence } = known;
  if (state.last_seq < notedSequence) return true;
  // Never looked at before: a stream that is empty is new, and one that is not has always been here.
  if (mark === undefined) return state.last_seq === 0;
  if (created !== mark.created || state.last_seq < mark.sequence) return true;
  if (mark.sequence === 0 || (state.last_seq === mark.sequence && state.last_ts === mark.stored)) return false;
  const message = await jsm.streams.getMessage(mark.stream, { seq: mark.sequence });
  if (message === null) return state.last_seq > mark.sequence;
  return message.timestamp !== mark.stored;
}
