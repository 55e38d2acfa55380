/**
 * The feed behind one replica, and whether the replica may be believed now (design §2.2):
 *
 *                   heard and complete              silent > 1.5 s, or this process stood still
 *   (start) ──► loading ──────────► fresh ──────────────────────────► doubtful
 *                                     ▲                                  │ heard again
 *                                     └──── a round trip to the server ──┘
 *
 * After a silence the first words may be old: they lay in a buffer while the server or this process stood still. Only
 * when a round trip through the server is over has everything arrived that lay before it.
 */
import { setTimeout as delay } from "node:timers/promises";
import { BucketCompleteness } from "../../services/bus/bucket-completeness.ts";
import type { Bus, BusLog } from "../../services/bus/connection.ts";
import { type Feed, openFeed } from "../../services/bus/feed.ts";
import { SequenceWait } from "../../services/bus/sequence-wait.ts";
import type { BucketDefinition } from "../../services/bus/streams.ts";

/** The waits of the replicas, each with its reason; those of the feeds beneath are in `services/bus/limits.ts`. */
export const FEED_LIMITS = {
  /** A replica that is not known to be complete up to this long ago answers nothing (design §2.2). */
  silenceMs: 1_500,
  /** How often a replica checks its feed: often enough that a silence is noticed when it happens and not afterwards. */
  checkMs: 100,
  /** How often a request that waits for the newest state looks for the proof. */
  newestCheckMs: 20,
} as const;

/** What a replica follows and how it takes it in. */
export interface FeedTarget {
  readonly stream: string;
  /** Those subjects of the stream that it follows. */
  readonly filter: string;
  /** The bucket behind the stream, which the relay alone writes, and where it notes that it is complete. */
  readonly bucket?: BucketDefinition;
  /** The subjects of the stream's beats, which the filter covers (`services/bus/beats.ts`). */
  readonly beats?: string;
  /** Everything known is void; a full load follows. */
  reset(): void;
  /** Empty `data` is a deletion. `data` is a view of the socket's memory: what is kept must be copied. `storedAtMs` is the server's clock. */
  apply(subject: string, data: Uint8Array, storedAtMs: number): void;
}

export class ReplicaFeed {
  /** The name of the stream that it follows. */
  readonly stream: string;
  readonly #bus: Bus;
  readonly #feed: Feed;
  readonly #completeness: BucketCompleteness | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #sequence = new SequenceWait();
  #isDoubtful = false;
  #isConfirming = false;
  #checkedAtMs: number;
  #completeAtMs = Number.NEGATIVE_INFINITY;

  constructor(bus: Bus, log: BusLog, target: FeedTarget) {
    this.#bus = bus;
    this.stream = target.stream;
    this.#checkedAtMs = bus.clock.nowMs();
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
    this.#timer = setInterval(() => this.#checkFeed(), FEED_LIMITS.checkMs);
  }

  /** Resolves once everything that the stream held at the start was applied: from then on the replica is fresh. */
  async loaded(): Promise<void> {
    await this.#feed.caughtUp;
    this.#completeAtMs = this.#bus.clock.nowMs();
  }

  /** How long ago the moment is up to which the replica is known to be complete, by either proof of its feed. */
  ageMs(nowMs: number): number {
    return Math.min(this.#heardAgeMs(nowMs), this.#feed.deliveredAgeMs());
  }

  /** The same by what is received of the feed; infinity while the replica is doubtful. */
  #heardAgeMs(nowMs: number): number {
    // A process that stood still has not checked: what it has read since may be old.
    if (this.#isDoubtful || nowMs - this.#checkedAtMs > FEED_LIMITS.silenceMs) return Number.POSITIVE_INFINITY;
    return Math.max(this.#feed.ageMs(), nowMs - this.#completeAtMs);
  }

  isFresh(nowMs: number): boolean {
    return this.ageMs(nowMs) <= FEED_LIMITS.silenceMs;
  }

  /** Resolves true once the replica is known to have all that was stored before this call, false when `timeoutMs` passes first. */
  async waitUntilNewest(timeoutMs: number): Promise<boolean> {
    const askedAtMs = this.#bus.clock.nowMs();
    for (;;) {
      const nowMs = this.#bus.clock.nowMs();
      if (nowMs - this.ageMs(nowMs) > askedAtMs) return true;
      if (nowMs - askedAtMs > timeoutMs) return false;
      await delay(FEED_LIMITS.newestCheckMs);
    }
  }

  /** Whether the relay has noted that the bucket is complete (`services/bus/bucket-completeness.ts`); true where it notes nothing. */
  isBucketComplete(): boolean {
    return this.#completeness?.isComplete() ?? true;
  }

  /**
   * Whether an entry that a fresh replica does not have is nowhere. Until then the gateway must not report it as unknown. While
   * the stream elects its leader, a new entry may wait for it.
   */
  hasAll(): boolean {
    const isHeard = this.#heardAgeMs(this.#bus.clock.nowMs()) <= FEED_LIMITS.silenceMs;
    return isHeard && this.isBucketComplete() && this.#feed.behind() === 0;
  }

  /** Resolves true once the message with this sequence was applied, false when `timeoutMs` passes first. */
  async waitFor(sequence: number, timeoutMs: number): Promise<boolean> {
    return await this.#sequence.waitFor(sequence, timeoutMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#feed.stop();
  }

  #checkFeed(): void {
    const nowMs = this.#bus.clock.nowMs();
    const stoodStill = nowMs - this.#checkedAtMs > FEED_LIMITS.silenceMs;
    const isSilent = this.#feed.silentForMs() > FEED_LIMITS.silenceMs;
    this.#checkedAtMs = nowMs;
    if (stoodStill || isSilent) this.#isDoubtful = true;
    else if (this.#isDoubtful && !this.#isConfirming) void this.#confirm();
    if (!isSilent && this.#feed.behind() === 0) this.#completeAtMs = nowMs;
  }

  async #confirm(): Promise<void> {
    this.#isConfirming = true;
    try {
      await this.#bus.nc.flush();
      // Silent again meanwhile, or still: the next check decides.
      if (this.#feed.silentForMs() <= FEED_LIMITS.silenceMs) this.#isDoubtful = false;
    } catch {
      // The connection broke during the round trip; the feed is asked for anew and confirmed then.
    } finally {
      this.#isConfirming = false;
    }
  }
}
