/**
 * Writes the buckets that gateways and actor hosts follow. A put, a kill switch and a completeness notice are stored only if
 * their key has not changed since the relay read it. So a late write, from an earlier term or after a lost answer, never
 * brings back an outdated entry.
 */
import { JetStreamApiError, type StoredMsg } from "@nats-io/jetstream";
import { headers, type MsgHdrs } from "nats";
import { COMPLETE_KEYS, type CompletenessNotice } from "../bus/bucket-completeness.ts";
import type { Bus } from "../bus/connection.ts";
import { WRONG_LAST_SEQUENCE } from "../bus/jetstream-codes.ts";
import type { SwitchEntry } from "../bus/messages/kill-switches.ts";
import { type BucketDefinition, SWITCHES } from "../bus/streams.ts";
import { RELAY_LIMITS } from "./limits.ts";

type Writer = Pick<Bus, "js" | "jsm">;

const OPERATION = "KV-Operation";
const SWITCH_REVISION = "Switch-Revision";

const streamOf = (bucket: BucketDefinition): string => `KV_${bucket.name}`;
/** The subject of an entry in the bucket's stream. */
export const subjectOf = (bucket: BucketDefinition, key: string): string => `$KV.${bucket.name}.${key}`;

/** From the stream's leader: a replica may not have the newest message yet. */
async function newestOf(
  { jsm }: Pick<Writer, "jsm">,
  bucket: BucketDefinition,
  key: string,
): Promise<StoredMsg | null> {
  return await jsm.streams.getMessage(streamOf(bucket), { last_by_subj: subjectOf(bucket, key) });
}

interface Write {
  readonly value: string;
  /** The sequence that the key's newest message must have; zero for none. */
  readonly after: number;
  readonly headers?: MsgHdrs;
}

/** The sequence of the new message; undefined when the key's newest message has another sequence than expected. */
async function writeAfter(
  { js }: Pick<Writer, "js">,
  bucket: BucketDefinition,
  key: string,
  { value, after, ...options }: Write,
): Promise<number | undefined> {
  const expect = { lastSubjectSequence: after };
  const timeout = RELAY_LIMITS.bucketTimeoutMs;
  try {
    return (await js.publish(subjectOf(bucket, key), value, { ...options, expect, timeout })).seq;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === WRONG_LAST_SEQUENCE) return undefined;
    throw error;
  }
}

/**
 * Puts an entry and returns its revision; undefined when the key has, or ever had, an entry, which then stays. A key is the
 * hash of a secret that is made once, so it is put once and deleted once.
 */
export async function putFirst(
  writer: Pick<Writer, "js">,
  bucket: BucketDefinition,
  key: string,
  entry: object,
): Promise<number | undefined> {
  return await writeAfter(writer, bucket, key, { value: JSON.stringify(entry), after: 0 });
}

/** Puts an entry unless the key has, or ever had, one; returns the revision of the key's newest message. */
export async function putOnce(writer: Writer, bucket: BucketDefinition, key: string, entry: object): Promise<number> {
  const revision = await putFirst(writer, bucket, key, entry);
  if (revision !== undefined) return revision;
  const newest = await newestOf(writer, bucket, key);
  if (newest === null) throw new Error(`The bucket ${bucket.name} refuses a first entry and shows none.`);
  return newest.seq;
}

/** Deletes an entry, also one that is not there yet; returns the deletion's revision. */
export async function deleteEntry({ js }: Pick<Writer, "js">, bucket: BucketDefinition, key: string): Promise<number> {
  const deletion = headers();
  deletion.set(OPERATION, "DEL");
  const options = { headers: deletion, timeout: RELAY_LIMITS.bucketTimeoutMs };
  return (await js.publish(subjectOf(bucket, key), undefined, options)).seq;
}

/** Whether the key has an entry now: neither nothing nor a deletion. */
export async function hasEntry(writer: Pick<Writer, "jsm">, bucket: BucketDefinition, key: string): Promise<boolean> {
  const newest = await newestOf(writer, bucket, key);
  return newest !== null && newest.header.get(OPERATION) === "";
}

/** Removes the marker that a deletion leaves, once no reader can depend on it any more. */
export async function removeMarker({ jsm }: Pick<Writer, "jsm">, bucket: BucketDefinition, key: string): Promise<void> {
  await jsm.streams.purge(streamOf(bucket), { filter: subjectOf(bucket, key) });
}

interface SwitchWritten {
  /** The revision at which the bucket has this entry, or a newer one. */
  readonly sequence: number;
  /** False when the bucket had this or a newer entry already. */
  readonly isNew: boolean;
}

/**
 * Writes a kill switch unless the bucket has its revision or a higher one: a switch goes on and off again and again, so
 * each entry carries the revision of its row. Throws when the bucket does not answer in time.
 */
export async function setSwitch(writer: Writer, { key, isOn, revision }: SwitchEntry): Promise<SwitchWritten> {
  const facts = headers();
  facts.set(SWITCH_REVISION, String(revision));
  if (!isOn) facts.set(OPERATION, "DEL");
  for (let attempt = 1; attempt <= RELAY_LIMITS.switchAttempts; attempt += 1) {
    const newest = await newestOf(writer, SWITCHES, key);
    const known = Number(newest?.header.get(SWITCH_REVISION) || "0");
    if (newest !== null && known >= revision) return { sequence: newest.seq, isNew: false };
    const entry: Write = { value: isOn ? "{}" : "", after: newest?.seq ?? 0, headers: facts };
    const sequence = await writeAfter(writer, SWITCHES, key, entry);
    if (sequence !== undefined) return { sequence, isNew: true };
  }
  throw new Error(`Other writers change the kill switch ${key} all the time.`);
}

/** Where the bucket's two completeness notices are, zero for none: what the writer of the next one has seen. */
export type NoticeSequences = readonly [first: number, second: number];

export async function readNoticeSequences(
  writer: Pick<Writer, "jsm">,
  bucket: BucketDefinition,
): Promise<NoticeSequences> {
  const sequenceOf = async (key: string): Promise<number> => (await newestOf(writer, bucket, key))?.seq ?? 0;
  const [first, second] = COMPLETE_KEYS;
  return await Promise.all([sequenceOf(first), sequenceOf(second)]);
}

/**
 * Writes the notice that the bucket is complete for this server; until then its readers treat no entry as missing. It is
 * stored only if the notices have not changed since the relay read them: a late notice, from a relay that was stalled, is
 * about a bucket that may have lost something since. Returns where the notices are now; undefined when they had changed.
 * Throws when it is not known whether the notice is stored.
 */
export async function noteComplete(
  writer: Writer,
  bucket: BucketDefinition,
  notice: CompletenessNotice,
  seen?: NoticeSequences,
): Promise<NoticeSequences | undefined> {
  const [first, second] = seen ?? (await readNoticeSequences(writer, bucket));
  const isFirst = first <= second;
  const [key, after] = isFirst ? [COMPLETE_KEYS[0], first] : [COMPLETE_KEYS[1], second];
  const sequence = await writeAfter(writer, bucket, key, { value: JSON.stringify(notice), after });
  if (sequence === undefined) return undefined;
  return isFirst ? [sequence, second] : [first, sequence];
}
