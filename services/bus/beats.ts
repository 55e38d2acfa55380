/**
 * Beats prove how current a reader of a replicated stream is (design §2.2). The heartbeats of a consumer come from the one
 * server that has the consumer, and prove nothing about the others: that server may be cut off from them.
 *
 *   reader ── beat, with the reader's own time ──► leader of the stream ── a majority stores it ──┐
 *     ▲                                                                                           │
 *     └── through the reader's consumer, in the order of the stream ◄─────────────────────────────┘
 *
 * All messages that were acknowledged before the reader sent the beat are before the beat in the stream. So a reader
 * that gets its beat back has everything up to the moment at which it sent the beat. A reader compares only the times
 * of its two clocks: neither a server's clock nor an old beat that arrives late can make a stale replica pass for a
 * current one.
 *
 * Each reader sends separate beats. The beat of one common writer would have the time of the writer's clock, which a
 * reader cannot compare with its clock. And all readers would be stale when that writer stalls.
 *
 * A beat is empty and has a deletion marker. So a reader that does not know beats ignores it, as the deletion of an
 * entry that never existed.
 */
import { randomInt, randomUUID } from "node:crypto";
import { headers, type MsgHdrs, type NatsConnection } from "nats";
import { BUS_LIMITS } from "./limits.ts";

const BEAT_HEADER = "Beat";

/** The subjects of a bucket's beats, without the last token. For a station log they are in its definition. */
export const bucketBeats = (bucket: { readonly name: string }): string => `$KV.${bucket.name}.beat`;

/** Whether a message of this subject is a beat; false when `beats` is undefined. */
export const isBeat = (subject: string, beats: string | undefined): boolean =>
  beats !== undefined && subject.length > beats.length && subject.startsWith(beats) && subject[beats.length] === ".";

/**
 * One of a fixed number of subjects, chosen at random, so that readers that have ended leave a bounded number of beats.
 * When two readers share a subject and the stream keeps only its newest message, some of their beats do not come back.
 */
export const beatSubject = (beats: string): string => `${beats}.${randomInt(BUS_LIMITS.beatSubjects)}`;

/** The headers of a message that changes nothing for any reader. */
export function beatHeaders(content: string): MsgHdrs {
  const facts = headers();
  facts.set(BEAT_HEADER, content);
  facts.set("KV-Operation", "DEL");
  return facts;
}

/** The content that `beatHeaders` has written; empty for another message. */
export const contentOf = ({ headers: facts }: { readonly headers: MsgHdrs | undefined }): string =>
  facts?.get(BEAT_HEADER) ?? "";

/** A time by both clocks: the steady clock stops while the machine sleeps, and the wall clock may be set back. */
export interface Moment {
  readonly steadyMs: number;
  readonly wallMs: number;
}

export const NEVER: Moment = { steadyMs: Number.NEGATIVE_INFINITY, wallMs: Number.NEGATIVE_INFINITY };
export const now = (): Moment => ({ steadyMs: performance.now(), wallMs: Date.now() });
export const ageOf = ({ steadyMs, wallMs }: Moment): number =>
  Math.max(performance.now() - steadyMs, Date.now() - wallMs);

/** What beats need of a connection. */
interface BeatBus {
  readonly nc: NatsConnection;
  isUp(): boolean;
}

/** The beats of one reader of one stream. */
export class Beats {
  readonly #bus: BeatBus;
  readonly #subject: string;
  readonly #reader = randomUUID();
  #timer: NodeJS.Timeout | undefined;
  /** When the reader sent the newest beat that has come back. */
  #provedAt = NEVER;

  constructor(bus: BeatBus, beats: string) {
    this.#bus = bus;
    this.#subject = beatSubject(beats);
  }

  /** Sends a beat now, and then one about every `beatMs`. */
  start(): void {
    clearTimeout(this.#timer);
    this.#send();
    // With a random part, so that two readers of the same subject do not always send at the same time.
    this.#timer = setTimeout(() => this.start(), BUS_LIMITS.beatMs * (0.8 + 0.2 * Math.random()));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Handles a beat of this reader, and ignores the beats of others. */
  take(beat: { readonly subject: string; readonly headers: MsgHdrs | undefined }): void {
    if (beat.subject !== this.#subject) return;
    const [reader, steadyMs, wallMs] = contentOf(beat).split(" ");
    const isNewer = Number(steadyMs) > this.#provedAt.steadyMs;
    if (reader === this.#reader && isNewer) this.#provedAt = { steadyMs: Number(steadyMs), wallMs: Number(wallMs) };
  }

  /** The age of the newest moment up to which the reader has everything. */
  ageMs(): number {
    return ageOf(this.#provedAt);
  }

  #send(): void {
    if (!this.#bus.isUp()) return;
    // No acknowledgement is awaited: the beat that comes back is the acknowledgement.
    const { steadyMs, wallMs } = now();
    const content = `${this.#reader} ${steadyMs} ${wallMs}`;
    this.#bus.nc.publish(this.#subject, "", { headers: beatHeaders(content) });
  }
}
