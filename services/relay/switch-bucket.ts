/**
 * Writing kill switches into their bucket. A switch goes on and off again and again, so each entry carries the revision
 * of its row, and each write demands that what it has compared itself with still stands: a delivery that comes late, from
 * a relay that has been succeeded or after a lost answer, can never bring back what is over.
 */
import { JetStreamApiError } from "@nats-io/jetstream";
import { headers } from "nats";
import { SWITCHES_TOLD_KEY, type SwitchEntry, type SwitchesTold } from "../bus/messages/kill-switches.ts";
import { SWITCHES } from "../bus/streams.ts";
import { type BucketDeps, WRONG_LAST_SEQUENCE } from "./buckets.ts";
import { RELAY_LIMITS } from "./limits.ts";

const REVISION_HEADER = "Switch-Revision";

export interface SwitchWritten {
  /** The bucket's revision at which this entry, or a newer one, stands. */
  readonly sequence: number;
  /** False when this or a newer entry stood there already. */
  readonly isNews: boolean;
}

/** Writes the entry unless one with its revision or a higher one stands. Throws when that cannot be found out in time. */
export async function setSwitch(deps: BucketDeps, entry: SwitchEntry): Promise<SwitchWritten> {
  const subject = `$KV.${SWITCHES.name}.${entry.key}`;
  const stream = `KV_${SWITCHES.name}`;
  for (let attempt = 1; attempt <= RELAY_LIMITS.switchAttempts; attempt += 1) {
    // From the stream's leader: a replica may not have the newest entry yet.
    const standing = await deps.jsm.streams.getMessage(stream, { last_by_subj: subject });
    const revision = Number(standing?.header.get(REVISION_HEADER) || "0");
    if (standing !== null && revision >= entry.revision) return { sequence: standing.seq, isNews: false };
    const sequence = await writeAfter(deps, subject, entry, standing?.seq ?? 0);
    if (sequence !== undefined) return { sequence, isNews: true };
  }
  throw new Error(`The kill switch ${entry.key} is being written by others all the time.`);
}

/**
 * Says in the bucket that everything has been told to this server; until then its readers offer nothing but cash. Throws
 * when it is not known to be stored.
 */
export async function noteSwitchesTold({ js }: Pick<BucketDeps, "js">, told: SwitchesTold): Promise<void> {
  const subject = `$KV.${SWITCHES.name}.${SWITCHES_TOLD_KEY}`;
  await js.publish(subject, JSON.stringify(told), { timeout: RELAY_LIMITS.bucketTimeoutMs });
}

/** The new entry's sequence; undefined when another one has come since `lastSequence`. */
async function writeAfter(
  { js }: BucketDeps,
  subject: string,
  { isOn, revision }: SwitchEntry,
  lastSequence: number,
): Promise<number | undefined> {
  const facts = headers();
  facts.set(REVISION_HEADER, String(revision));
  if (!isOn) facts.set("KV-Operation", "DEL");
  try {
    const ack = await js.publish(subject, isOn ? "{}" : "", {
      headers: facts,
      expect: { lastSubjectSequence: lastSequence },
      timeout: RELAY_LIMITS.bucketTimeoutMs,
    });
    return ack.seq;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === WRONG_LAST_SEQUENCE) return undefined;
    throw error;
  }
}
