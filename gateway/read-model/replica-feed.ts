/**
 * The feed of one replica, and whether the gateway may answer from the replica now (design §2.2):
 *
 *                     complete             silent > 1.5 s, or this process was stalled or slept
 *   (start) ──► loading ──────────► fresh ──────────────────────────► unconfirmed
 *                                     ▲                                  │ a message arrives
 *                                     └──── a round trip to the server ──┘
 *
 * After a silence the first messages may be old: they were in a buffer while the server or this process was stalled. A round
 * trip to the server proves that all of these have arrived.
 */
import { ageOf, now } from "../../services/bus/beats.ts";
import { BucketCompleteness } from "../../services/bus/bucket-completeness.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { type Feed, openFeed } from "../../services/bus/feed.ts";
import { SequenceWait } from "../../services/bus/sequence-wait.ts";
import type { BucketDefinition } from "../../services/bus/streams.ts";
import { every } from "../../services/runtime/every.ts";
import type { LineLog } from "../../services/runtime/log.ts";

/** The waits of the replicas, each with its reason. Those of the feeds are in `services/bus/limits.ts`. */
export const FEED_LIMITS = {
  /** The oldest state from which a replica answers (design §2.2). */
  silenceMs: 1_500,
  /** How often a replica checks its feed: often enough to notice a silence while it lasts. */
  checkMs: 100,
} as const;

/** What a replica follows, and how it applies the messages. */
export interface FeedTarget {
  readonly stream: string;
  /** The subjects of the stream that it follows. */
  readonly filter: string;
  /** The bucket of the stream. Only the relay writes it, and notes in it when it is complete. */
  readonly bucket?: BucketDefinition;
  /** The subjects of the stream's beats, which the filter covers (`services/bus/beats.ts`). */
  readonly beats?: string;
  /** Drops all data. A full load follows. */
  reset(): void;
  /**
   * Empty `data` is a deletion. Copy what you keep: `data` is a view of the socket's memory. `storedAtMs` is the server's clock.
   */
  apply(subject: string, data: Uint8Array, storedAtMs: number): void;
}

export class ReplicaFeed {
  /** The name of the stream that it follows. */
  readonly stream: string;
  readonly #bus: Bus;
  readonly #feed: Feed;
  readonly #completeness: BucketCompleteness | undefined;
  readonly #stopChecks: () => void;
  readonly #sequence = new SequenceWait();
  #isUnconfirmed = false;
  #isConfirming = false;
  #checkedAt = now();
  #completeAtMs = Number.NEGATIVE_INFINITY;

  constructor(bus: Bus, log: LineLog, target: FeedTarget) {
    this.#bus = bus;
    this.stream = target.stream;
    this.#completeness = target.bucket && new BucketCompleteness(bus, target.bucket);
    this.#feed = openFeed(bus, {
      stream: target.stream,
      filter: target.filter,
      ...(target.beats === undefined ? {} : { beats: target.beats }),
      isOfRelay: target.bucket !== undefined,
      log,
      onReset: () => {
        this.#sequence.reached(0);
        this.#completeness?.reset();
        target.reset();
      },
      onMessage: (message) => {
        if (this.#completeness?.take(message) !== true) target.apply(message.subject, message.data, message.storedAtMs);
        if (message.pending === 0) this.#completeAtMs = this.#bus.clock.nowMs();
        this.#sequence.reached(message.sequence);
      },
    });
    this.#stopChecks = every(FEED_LIMITS.checkMs, () => this.#checkFeed());
  }

  /** Resolves once the replica has applied everything that the stream held at the start. From then on it is fresh. */
  async loaded(): Promise<void> {
    await this.#feed.caughtUp;
    this.#completeAtMs = this.#bus.clock.nowMs();
  }

  /** The age of the replica: it has everything that was stored before. The younger of the two proofs of the feed counts. */
  ageMs(nowMs: number): number {
    return Math.min(this.#receivedAgeMs(nowMs), this.#feed.deliveredAgeMs());
  }

  /** The age by the messages that the feed has received. Infinity while the replica is unconfirmed. */
  #receivedAgeMs(nowMs: number): number {
    if (this.#isUnconfirmed || this.#wasStalled()) return Number.POSITIVE_INFINITY;
    return Math.max(this.#feed.ageMs(), nowMs - this.#completeAtMs);
  }

  isFresh(nowMs: number): boolean {
    return this.ageMs(nowMs) <= FEED_LIMITS.silenceMs;
  }

  /** Resolves true once the replica has all that was stored before this call, false without a proof in time. */
  async waitUntilNewest(): Promise<boolean> {
    return await this.#feed.prove();
  }

  /** Whether the relay has noted that the bucket is complete (`services/bus/bucket-completeness.ts`). True without a bucket. */
  isBucketComplete(): boolean {
    return this.#completeness?.isComplete() ?? true;
  }

  /**
   * Whether an entry that the replica does not have does not exist. If false, the gateway must not report the entry as unknown:
   * for example, while the stream elects a leader, a new entry may still be on its way.
   */
  hasAll(): boolean {
    const isReceiving = this.#receivedAgeMs(this.#bus.clock.nowMs()) <= FEED_LIMITS.silenceMs;
    return isReceiving && this.isBucketComplete() && this.#feed.behind() === 0;
  }

  /** Resolves true once the replica has applied the message with this sequence, false when `timeoutMs` passes first. */
  async waitFor(sequence: number, timeoutMs: number): Promise<boolean> {
    return await this.#sequence.waitFor(sequence, timeoutMs);
  }

  stop(): void {
    this.#stopChecks();
    this.#feed.stop();
  }

  #checkFeed(): void {
    const nowMs = this.#bus.clock.nowMs();
    const wasStalled = this.#wasStalled();
    const isSilent = this.#feed.silentForMs() > FEED_LIMITS.silenceMs;
    this.#checkedAt = now();
    if (wasStalled || isSilent) this.#isUnconfirmed = true;
    else if (this.#isUnconfirmed && !this.#isConfirming) void this.#confirm();
    const isComplete = !isSilent && this.#feed.behind() === 0;
    // Never ahead of the clock, which may have been set back.
    this.#completeAtMs = isComplete ? nowMs : Math.min(this.#completeAtMs, nowMs);
  }

  /** A late check means that the process was stalled, or its machine slept: what it has read since then may be old. */
  #wasStalled(): boolean {
    return ageOf(this.#checkedAt) > FEED_LIMITS.silenceMs;
  }

  async #confirm(): Promise<void> {
    this.#isConfirming = true;
    try {
      await this.#bus.nc.flush();
      // If the feed is silent, a later check confirms.
      if (this.#feed.silentForMs() <= FEED_LIMITS.silenceMs) this.#isUnconfirmed = false;
    } catch {
      // The connection broke during the round trip. The feed starts again, and a later check confirms.
    } finally {
      this.#isConfirming = false;
    }
  }
}
