/**
 * Writing entries of the buckets that gateways follow. A key is the hash of a secret that is made once: it is put once and
 * deleted once, ever. So a put demands that the key has no entry and no deletion yet, and a put that arrives late, from a
 * relay that has been succeeded or after a lost answer, can never bring back what was deleted.
 */
import { JetStreamApiError, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { headers } from "nats";
import type { BucketDefinition } from "../bus/streams.ts";
import { TOLD_KEYS, type ToldServer } from "../bus/told.ts";
import { RELAY_LIMITS } from "./limits.ts";

/** The server's code for "wrong last sequence", when the expectation about a subject's last message does not hold. */
export const WRONG_LAST_SEQUENCE = 10_071;

export interface BucketDeps {
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
}

/** Puts an entry unless the key has, or ever had, one; returns the revision that stands. */
export async function putOnce(deps: BucketDeps, bucket: BucketDefinition, key: string, value: object): Promise<number> {
  const revision = await putFirst(deps, bucket, key, value);
  if (revision !== undefined) return revision;
  const subject = subjectOf(bucket, key);
  const standing = await deps.jsm.streams.getMessage(streamOf(bucket), { last_by_subj: subject });
  if (standing === null) throw new Error(`The bucket ${bucket.name} refuses a first entry and shows none.`);
  return standing.seq;
}

/** Puts an entry and returns its revision; undefined when the key has, or ever had, one, which then stands. */
export async function putFirst(
  { js }: Pick<BucketDeps, "js">,
  bucket: BucketDefinition,
  key: string,
  value: object,
): Promise<number | undefined> {
  try {
    const ack = await js.publish(subjectOf(bucket, key), JSON.stringify(value), {
      expect: { lastSubjectSequence: 0 },
      timeout: RELAY_LIMITS.bucketTimeoutMs,
    });
    return ack.seq;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === WRONG_LAST_SEQUENCE) return undefined;
    throw error;
  }
}

/** Deletes an entry, also one that is not there yet; returns the deletion's revision. */
export async function deleteEntry(deps: BucketDeps, bucket: BucketDefinition, key: string): Promise<number> {
  const operation = headers();
  operation.set("KV-Operation", "DEL");
  const ack = await deps.js.publish(subjectOf(bucket, key), undefined, {
    headers: operation,
    timeout: RELAY_LIMITS.bucketTimeoutMs,
  });
  return ack.seq;
}

/** Whether an entry stands under the key: neither nothing nor a deletion. */
export async function hasEntry(
  { jsm }: Pick<BucketDeps, "jsm">,
  bucket: BucketDefinition,
  key: string,
): Promise<boolean> {
  const newest = await jsm.streams.getMessage(streamOf(bucket), { last_by_subj: subjectOf(bucket, key) });
  return newest !== null && newest.header.get("KV-Operation") === "";
}

/** Removes the marker that a deletion leaves, once no reader can depend on it any more. */
export async function removeMarker(deps: BucketDeps, bucket: BucketDefinition, key: string): Promise<void> {
  await deps.jsm.streams.purge(streamOf(bucket), { filter: subjectOf(bucket, key) });
}

/** Where the bucket's two words stand, zero for none: what the writer of the next one has seen. */
export type ToldSequences = readonly [first: number, second: number];

export async function readToldSequences(
  { jsm }: Pick<BucketDeps, "jsm">,
  bucket: BucketDefinition,
): Promise<ToldSequences> {
  const sequenceOf = async (key: string): Promise<number> =>
    (await jsm.streams.getMessage(streamOf(bucket), { last_by_subj: subjectOf(bucket, key) }))?.seq ?? 0;
  const [first, second] = TOLD_KEYS;
  return await Promise.all([sequenceOf(first), sequenceOf(second)]);
}

/**
 * Notes in the bucket that everything has been published to this server; until then its readers take nothing for missing. It
 * demands that the words still stand as they were seen: one that comes late, from a relay that was stalled meanwhile, speaks
 * of a bucket that may have lost something since. Returns how they stand now; undefined when they stood differently. Throws
 * when it is not known to be stored.
 */
export async function noteTold(
  deps: BucketDeps,
  bucket: BucketDefinition,
  told: ToldServer,
  seen?: ToldSequences,
): Promise<ToldSequences | undefined> {
  const [first, second] = seen ?? (await readToldSequences(deps, bucket));
  const isFirst = first <= second;
  const ack = await deps.js
    .publish(subjectOf(bucket, TOLD_KEYS[isFirst ? 0 : 1]), JSON.stringify(told), {
      expect: { lastSubjectSequence: isFirst ? first : second },
      timeout: RELAY_LIMITS.bucketTimeoutMs,
    })
    .catch((error: unknown) => {
      if (error instanceof JetStreamApiError && error.code === WRONG_LAST_SEQUENCE) return undefined;
      throw error;
    });
  if (ack === undefined) return undefined;
  return isFirst ? [ack.seq, second] : [first, ack.seq];
}

const subjectOf = (bucket: BucketDefinition, key: string): string => `$KV.${bucket.name}.${key}`;
const streamOf = (bucket: BucketDefinition): string => `KV_${bucket.name}`;
