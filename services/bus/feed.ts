/**
 * A feed of one stream or bucket: first the newest message of each subject, then every later message. Messages come in the
 * order of the stream, each once, until the feed is stopped.
 *
 * It is an ordered push consumer. After a gap, a missed idle heartbeat, a reconnect, or when the server has lost the consumer,
 * the feed creates another one after the last handled message. We do not use the client's ordered consumer: after its first
 * restart its idle heartbeat takes 30 s, which is too slow for a replica that must not be stale.
 *
 * In a cluster a consumer is at one server, and only the leader of JetStream's metadata can create another one. When
 * one of these servers is stalled or dead, that takes an election. Until then the feed reads from any copy of the
 * stream:
 *
 *   consumer sends ── silent for 0.6 s ──► read new messages, ten times a second ── consumer sends again ──► …
 */

import { AckPolicy, type ConsumerConfig, DeliverPolicy } from "@nats-io/jetstream";
import { createInbox, type Msg, type MsgHdrs, nanos, type Subscription } from "nats";
import { every } from "../runtime/every.ts";
import type { LineLog } from "../runtime/log.ts";
import { OutageLog } from "../runtime/repeat.ts";
import { ageOf, Beats, isBeat, now } from "./beats.ts";
import type { Bus } from "./connection.ts";
import { Delivered } from "./delivered.ts";
import { readBatch } from "./direct-reader.ts";
import { BUS_LIMITS } from "./limits.ts";
import { parsePlace } from "./message-place.ts";
import { Proofs } from "./proofs.ts";

export interface FeedMessage {
  readonly subject: string;
  /** Belongs to the receiver; empty when the feed carries headers only. */
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  /** The stream sequence; for a bucket, the entry's revision. */
  readonly sequence: number;
  /** When the server stored it, by the server's clock. */
  readonly storedAtMs: number;
  /** How many later messages of the stream the feed had not received yet. */
  readonly pending: number;
}

interface FeedOptions {
  readonly stream: string;
  readonly filter: string;
  /**
   * The subjects of the stream's beats, without the last token; the filter covers them. The feed of a replicated stream then
   * proves by beats how current it is. `onMessage` does not receive beats.
   */
  readonly beats?: string;
  /** Only the relay writes the stream: without a leader, a relay proves how current the feed is (`delivered.ts`). */
  readonly isOfRelay?: boolean;
  readonly headersOnly?: boolean;
  /** The stream keeps one message per subject, so the feed reads all of it and the server need not search for the newest ones. */
  readonly keepsOnlyNewest?: boolean;
  /** Bounds the rate, so that a long read does not slow down the server's other clients. */
  readonly bitsPerSecond?: number;
  /** Must not throw; an error is logged and the message counts as handled. */
  readonly onMessage: (message: FeedMessage) => void;
  /** The stream was deleted and created again: everything read so far is void, and the feed starts from the beginning. */
  readonly onReset: () => void;
  readonly log: LineLog;
}

export interface Feed {
  /** Resolves when everything that was stored at the start has been handled. Rejects when the feed is stopped before. */
  readonly caughtUp: Promise<void>;
  /** Milliseconds since a server last sent something on this feed. */
  silentForMs(): number;
  /**
   * The feed certainly has everything that was stored this long ago or earlier. So the age decides whether a replica is
   * stale. With beats it counts from the sending of the newest beat that has come back, else from the server's last
   * message.
   */
  ageMs(): number;
  /** The age by the proof of a relay (`delivered.ts`), while no beat comes back; infinity without a proof. */
  deliveredAgeMs(): number;
  /** How many stored messages the feed has not handled yet, by the last message or direct read. */
  behind(): number;
  /** Of a stream with beats: resolves true when the feed has everything that was stored before this call (`proofs.ts`). */
  prove(): Promise<boolean>;
  stop(): void;
}

export function openFeed(bus: Bus, options: FeedOptions): Feed {
  const feed = new RunningFeed(bus, options);
  return {
    caughtUp: feed.caughtUp.promise,
    silentForMs: () => ageOf(feed.receivedAt),
    ageMs: () => feed.beats?.ageMs() ?? ageOf(feed.receivedAt),
    deliveredAgeMs: () => feed.deliveredAgeMs(),
    behind: () => feed.behind,
    prove: async () => (await feed.proofs?.prove()) === true,
    stop: () => feed.stop(),
  };
}

class RunningFeed {
  readonly caughtUp = Promise.withResolvers<void>();
  receivedAt = now();
  /** When the consumer last sent something. */
  #consumerReceivedAt = performance.now();
  behind = 0;
  /** Undefined until the feed knows that the stream has several copies: one copy needs no majority. */
  beats: Beats | undefined;
  #deliveredProof: Delivered | undefined;
  /** When the feed last started over. What it read before is void. */
  #startedOverAt = Number.NEGATIVE_INFINITY;
  readonly #bus: Bus;
  readonly #options: FeedOptions;
  readonly #outage: OutageLog;
  readonly #stopListening: () => void;
  readonly #stopWatch: () => void;
  #subscription: Subscription | undefined;
  #consumerName: string | undefined;
  /** The stream sequence of the last handled message; the next consumer starts after it. */
  #sequence = 0;
  /** How many messages the current consumer has sent; a jump shows a gap. */
  #delivered = 0;
  /** The last message that is not a beat. Beats are no use for a comparison: the stream soon deletes them. */
  #lastContent = { sequence: 0, storedAtMs: 0 };
  /** When the stream was created. It changes when the stream was deleted and created again under the same name. */
  #streamCreated: string | undefined;
  /** The id of the server that the last consumer was on. A server has a new id after each start. */
  #serverId: string | undefined;
  #isStopped = false;
  #isStarting = false;
  #isReading = false;
  /** Whether the stream is known to have more than one copy. */
  #isReplicated = false;
  /** How often in a row the stream was shorter than what was read of it. */
  #shorterTimes = 0;
  /** Undefined for a stream without beats. */
  readonly proofs: Proofs | undefined;
  /** Whether the first read is over. Only that read skips messages: it has just the newest one of each subject. */
  #isLoaded = false;

  constructor(bus: Bus, options: FeedOptions) {
    this.#bus = bus;
    this.#options = options;
    this.proofs = options.beats === undefined ? undefined : new Proofs(bus, options.beats);
    this.#outage = new OutageLog(options.log, `the feed of ${options.stream}`);
    this.caughtUp.promise.catch(() => undefined);
    this.#stopListening = bus.onChange((isUp) => {
      if (isUp) void this.#start();
    });
    this.#stopWatch = every(BUS_LIMITS.feedWatchMs, () => {
      if (!bus.isUp() || !this.#isConsumerSilent()) return;
      void this.#readDirectly();
      if (performance.now() - this.#consumerReceivedAt > BUS_LIMITS.feedSilenceMs) void this.#start();
    });
    void this.#start();
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#stopWatch();
    this.#stopProofs();
    this.#stopListening();
    this.#forget();
    this.caughtUp.reject(new Error("The feed was stopped."));
  }

  /** After a new start the relay's proof counts only when a beat has proved that the feed has read everything. */
  deliveredAgeMs(): number {
    const isBegun = this.beats !== undefined && performance.now() - this.beats.ageMs() > this.#startedOverAt;
    return isBegun && this.#deliveredProof !== undefined ? this.#deliveredProof.ageMs() : Number.POSITIVE_INFINITY;
  }

  async #start(): Promise<void> {
    if (this.#isStarting || this.#isStopped) return;
    this.#isStarting = true;
    try {
      while (!this.#isStopped && this.#bus.isUp()) {
        try {
          await this.#subscribe();
          this.#outage.worked();
          return;
        } catch (error) {
          this.#outage.failed(error);
          await new Promise((resolve) => setTimeout(resolve, BUS_LIMITS.feedRetryMs));
        }
      }
    } finally {
      this.#isStarting = false;
    }
  }

  async #subscribe(): Promise<void> {
    this.#forget();
    const { stream } = this.#options;
    const { created, state, config } = await this.#bus.jsm.streams.info(stream);
    if (this.#isStopped) return;
    this.#setProofs(config.num_replicas);
    const isRecreated = this.#streamCreated !== undefined && this.#streamCreated !== created;
    this.#streamCreated = created;
    // When the stream has lost its end, what the feed has read is void, as after a deletion of the stream.
    if (isRecreated || this.#hasLostEnd(state.last_seq) || !(await this.#isSharedPast())) {
      this.#startedOverAt = performance.now();
      this.#sequence = 0;
      this.#isLoaded = false;
      this.#lastContent = { sequence: 0, storedAtMs: 0 };
      this.#serverId = this.#bus.nc.info?.server_id;
      this.#options.onReset();
    }
    if (this.#isStopped) return;
    // The stream may have lost beats after the last content, and have other messages in their place.
    if (!this.#isReplicated || state.last_seq < this.#sequence) this.#sequence = this.#lastContent.sequence;
    const inbox = createInbox();
    this.#delivered = 0;
    const subscription = this.#bus.nc.subscribe(inbox, {
      callback: (error, message) => {
        if (error === null && subscription === this.#subscription) this.#receive(message);
      },
    });
    this.#subscription = subscription;
    const consumer = await this.#bus.jsm.consumers.add(stream, this.#consumerConfig(inbox));
    this.#consumerName = consumer.name;
    if (this.#isStopped) return this.#forget();
    this.#noteConsumer();
    // The first messages may arrive before this answer; then their count of pending messages is newer.
    if (this.#delivered === 0) this.behind = consumer.num_pending;
    if (consumer.num_pending === 0 && consumer.delivered.consumer_seq === 0) this.#load();
    this.beats?.start();
  }

  #setProofs(replicas: number): void {
    const { beats, stream, isOfRelay } = this.#options;
    this.#isReplicated = replicas > 1;
    if (beats === undefined || !this.#isReplicated) return this.#stopProofs();
    const ofFeed = (this.beats ??= new Beats(this.#bus, beats));
    if (isOfRelay !== true) return;
    this.#deliveredProof ??= new Delivered({
      bus: this.#bus,
      stream,
      sequence: () => this.#sequence,
      beatAgeMs: () => ofFeed.ageMs(),
    });
  }

  #stopProofs(): void {
    this.beats?.stop();
    this.beats = undefined;
    this.#deliveredProof?.stop();
    this.#deliveredProof = undefined;
  }

  /**
   * Whether the stream is shorter than what the feed has read of it. A newly elected leader may not have applied all
   * its messages yet. So a leader must report it several times in a row; until then this throws.
   */
  #hasLostEnd(lastSequence: number): boolean {
    const isShorter = lastSequence < this.#lastContent.sequence;
    this.#shorterTimes = isShorter ? this.#shorterTimes + 1 : 0;
    if (!isShorter || !this.#isReplicated || this.#shorterTimes >= BUS_LIMITS.feedLossConfirmations) return isShorter;
    throw new Error(`The leader of ${this.#options.stream} has not applied all that was read of it.`);
  }

  /**
   * Whether the stream still has the message that the feed handled last. A restarted server may have lost it and have
   * stored another message with the same sequence. A message that the stream has deleted to make room counts as lost,
   * because the feed cannot check it. In a cluster a change of server needs no check: a majority has the message.
   */
  async #isSharedPast(): Promise<boolean> {
    const serverId = this.#bus.nc.info?.server_id;
    const isSameServer = this.#serverId === undefined || this.#serverId === serverId;
    const { sequence, storedAtMs } = this.#lastContent;
    if (!isSameServer && !this.#isReplicated && sequence > 0) {
      const message = await this.#bus.jsm.streams.getMessage(this.#options.stream, { seq: sequence });
      if (message === null || Math.abs(message.time.getTime() - storedAtMs) > 1) return false;
    }
    this.#serverId = serverId;
    return true;
  }

  #consumerConfig(inbox: string): Partial<ConsumerConfig> {
    const { filter, headersOnly, keepsOnlyNewest, bitsPerSecond } = this.#options;
    const start =
      this.#sequence > 0
        ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: this.#sequence + 1 }
        : { deliver_policy: keepsOnlyNewest === true ? DeliverPolicy.All : DeliverPolicy.LastPerSubject };
    return {
      ...start,
      deliver_subject: inbox,
      filter_subject: filter,
      ack_policy: AckPolicy.None,
      max_deliver: 1,
      ...(bitsPerSecond === undefined ? {} : { rate_limit_bps: bitsPerSecond }),
      flow_control: true,
      idle_heartbeat: nanos(this.#isReplicated ? BUS_LIMITS.feedHeartbeatMs : BUS_LIMITS.feedHeartbeatSingleMs),
      inactive_threshold: nanos(BUS_LIMITS.feedForgottenMs),
      headers_only: headersOnly ?? false,
      mem_storage: true,
      num_replicas: 1,
    };
  }

  #noteConsumer(): void {
    this.#consumerReceivedAt = performance.now();
    this.receivedAt = now();
  }

  #isConsumerSilent(): boolean {
    return performance.now() - this.#consumerReceivedAt > BUS_LIMITS.feedDirectMs;
  }

  /** Reads new messages from any copy that answers, until the consumer sends again. */
  async #readDirectly(): Promise<void> {
    if (!this.#isReplicated || !this.#isLoaded || this.#isReading) return;
    this.#isReading = true;
    const { stream, filter: subjects } = this.#options;
    try {
      while (!this.#isStopped && this.#isConsumerSilent()) {
        const from = this.#sequence + 1;
        const messages = await readBatch(this.#bus.nc, {
          stream,
          subjects,
          from,
          most: BUS_LIMITS.feedReadMessages,
          timeoutMs: BUS_LIMITS.feedReadMs,
          askAgainMs: BUS_LIMITS.feedReadAgainMs,
        });
        // The feed was stopped or has started over meanwhile.
        if (this.#isStopped || !this.#isLoaded || this.#sequence < from - 1) return;
        this.receivedAt = now();
        for (const message of messages) this.#take(message);
        if ((messages.at(-1)?.pending ?? 0) > 0) continue;
        this.behind = 0;
        await new Promise((resolve) => setTimeout(resolve, BUS_LIMITS.feedReadPauseMs));
      }
    } catch {
      // No copy has answered: the next turn reads again.
    } finally {
      this.#isReading = false;
    }
  }

  #receive(message: Msg): void {
    this.#noteConsumer();
    if (message.headers?.code === 100) return this.#receiveControl(message, message.headers);
    // A message without a place in the stream is an error of the server, for example that it has deleted the consumer.
    const place = parsePlace(message.reply);
    if (place === undefined || place.delivered !== this.#delivered + 1) return void this.#start();
    this.#delivered = place.delivered;
    this.behind = place.pending;
    const { subject, data, headers } = message;
    this.#take({ subject, data, headers, ...place });
    if (place.pending === 0) this.#load();
  }

  #load(): void {
    this.#isLoaded = true;
    this.caughtUp.resolve();
  }

  /** Handles a message, unless the feed has handled it already: a consumer repeats what a direct read has read. */
  #take({ subject, data, headers, sequence, storedAtMs, pending }: FeedMessage): void {
    if (sequence <= this.#sequence) return;
    this.#sequence = sequence;
    if (isBeat(subject, this.#options.beats)) {
      this.proofs?.take({ headers });
      // A stream with one copy has no beats but those of `prove`.
      return this.beats?.take({ subject, headers });
    }
    this.#lastContent = { sequence, storedAtMs };
    try {
      this.#options.onMessage({ subject, data, headers, sequence, storedAtMs, pending });
    } catch (error) {
      this.#options.log.warn({ err: error, subject }, "a message of a feed was not understood");
    }
  }

  /** Answers flow control, without which the server stops sending. An idle heartbeat may show a gap. */
  #receiveControl(message: Msg, headers: MsgHdrs): void {
    if (message.reply !== undefined && message.reply !== "") {
      message.respond();
      return;
    }
    const stalled = headers.get("Nats-Consumer-Stalled");
    if (stalled !== "") this.#bus.nc.publish(stalled);
    const delivered = Number(headers.get("Nats-Last-Consumer") || "0");
    if (delivered > this.#delivered) void this.#start();
  }

  #forget(): void {
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
    const name = this.#consumerName;
    this.#consumerName = undefined;
    if (name === undefined || !this.#bus.isUp()) return;
    // If this fails, the server deletes the consumer after `feedForgottenMs`.
    this.#bus.jsm.consumers.delete(this.#options.stream, name).catch(() => undefined);
  }
}
