/**
 * A feed of one stream or bucket: first the newest message of each subject, then every later message. Messages come in the
 * order of the stream, each once, until the feed is stopped.
 *
 * It is an ordered push consumer. After a gap, a missed idle heartbeat, a reconnect, or when the server has lost the consumer,
 * the feed creates another one after the last handled message. We do not use the client's ordered consumer: after its first
 * restart its idle heartbeat takes 30 s, which is too slow for a replica that must not be stale.
 *
 * In a cluster a consumer is at one server, and only the leader of JetStream's metadata can create another one. When one of
 * them is stalled or dead, this takes until an election. Until then the feed reads from any copy of the stream:
 *
 *   consumer sends ── silent for 0.6 s ──► read new messages, ten times a second ── consumer sends again ──► …
 */
import { AckPolicy, type ConsumerConfig, DeliverPolicy } from "@nats-io/jetstream";
import { createInbox, type Msg, type MsgHdrs, nanos, type Subscription } from "nats";
import { OutageLog } from "../runtime/repeat.ts";
import { Beats, isBeat } from "./beats.ts";
import type { Bus, BusLog } from "./connection.ts";
import { Delivered } from "./delivered.ts";
import { readBatch } from "./direct-reader.ts";
import { BUS_LIMITS } from "./limits.ts";

export interface FeedMessage {
  readonly subject: string;
  /** Belongs to the receiver; empty when the feed carries headers only. */
  readonly data: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  /** The stream sequence; for a bucket, the entry's revision. */
  readonly sequence: number;
  /** When the server stored it, by the server's clock. */
  readonly storedAtMs: number;
  /** How many later messages the feed had not received yet. */
  readonly pending: number;
}

export interface FeedOptions {
  readonly stream: string;
  readonly filter: string;
  /**
   * The subjects of the stream's beats, without the last token; the filter covers them. The feed of a replicated stream then
   * proves by beats how current it is. `onMessage` does not receive beats.
   */
  readonly beats?: string;
  /** The relay alone writes the stream: while it has no leader, a relay proves how current the feed is (`delivered.ts`). */
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
  readonly log: BusLog;
}

export interface Feed {
  /** Resolves when everything that was stored at the start has been handled. Rejects when the feed is stopped before. */
  readonly caughtUp: Promise<void>;
  /** Milliseconds since a server last sent something on this feed. */
  silentForMs(): number;
  /**
   * The age of the feed, which decides whether a replica is stale: it certainly has everything up to that long ago. With beats
   * it is the time since the newest returned beat was sent, else the time since the server last sent something.
   */
  ageMs(): number;
  /** The same by the proof of a relay (`delivered.ts`), for the time when no beat comes back; infinity without such a proof. */
  deliveredAgeMs(): number;
  /** How many stored messages the feed has not handled yet, as far as it knows: after a long silence a consumer answers first. */
  behind(): number;
  stop(): void;
}

export function openFeed(bus: Bus, options: FeedOptions): Feed {
  const feed = new RunningFeed(bus, options);
  return {
    caughtUp: feed.caughtUp.promise,
    silentForMs: () => performance.now() - feed.receivedAt,
    ageMs: () => feed.beats?.ageMs() ?? performance.now() - feed.receivedAt,
    deliveredAgeMs: () => feed.deliveredAgeMs(),
    behind: () => feed.behind,
    stop: () => feed.stop(),
  };
}

class RunningFeed {
  readonly caughtUp = Promise.withResolvers<void>();
  receivedAt = performance.now();
  /** The same of the consumer alone. */
  #consumerReceivedAt = performance.now();
  behind = 0;
  /** Undefined while the stream is not known to be replicated: one server needs no majority. */
  beats: Beats | undefined;
  #deliveredProof: Delivered | undefined;
  /** When everything read before became void. */
  #startedOverAt = Number.NEGATIVE_INFINITY;
  readonly #bus: Bus;
  readonly #options: FeedOptions;
  readonly #outage: OutageLog;
  readonly #stopListening: () => void;
  readonly #watch: NodeJS.Timeout;
  #subscription: Subscription | undefined;
  #consumerName: string | undefined;
  /** Of the last message handled, in the stream; the next consumer starts behind it. */
  #sequence = 0;
  /** Counts the messages of the current consumer; a jump is a gap. */
  #delivered = 0;
  /** Of the last message that is no beat: beats make room for newer ones at once, and nothing can be compared with them. */
  #lastContent = { sequence: 0, storedAtMs: 0 };
  /** Differs when the stream was deleted and created again under the same name. */
  #streamCreated: string | undefined;
  /** Of the server that the last consumer was on; another one after each start of it. */
  #serverId: string | undefined;
  #isStopped = false;
  #isStarting = false;
  #isReading = false;
  /** Whether the stream is known to have more than one copy. */
  #isReplicated = false;
  /** How often in a row the stream was shorter than what was read of it. */
  #shorterTimes = 0;
  /** Whether the first read is over, which gives of each subject the newest message alone; no other read does. */
  #isLoaded = false;

  constructor(bus: Bus, options: FeedOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#outage = new OutageLog(options.log, `the feed of ${options.stream}`);
    this.caughtUp.promise.catch(() => undefined);
    this.#stopListening = bus.onChange((isUp) => {
      if (isUp) void this.#start();
    });
    this.#watch = setInterval(() => {
      if (!bus.isUp() || !this.#isConsumerSilent()) return;
      void this.#readDirectly();
      if (performance.now() - this.#consumerReceivedAt > BUS_LIMITS.feedSilenceMs) void this.#start();
    }, BUS_LIMITS.feedHeartbeatMs);
    void this.#start();
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    clearInterval(this.#watch);
    this.#stopProofs();
    this.#stopListening();
    this.#forget();
    this.caughtUp.reject(new Error("The feed was stopped."));
  }

  /** The relay's word counts for what was read since the feed started over, once a beat has proved that to be everything. */
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
    this.#setProofs(config.num_replicas);
    const isAnew = this.#streamCreated !== undefined && this.#streamCreated !== created;
    this.#streamCreated = created;
    // A stream that has lost its end voids what was read from it as a deleted one does.
    if (isAnew || this.#hasLostEnd(state.last_seq) || !(await this.#isSharedPast())) {
      this.#startedOverAt = performance.now();
      this.#sequence = 0;
      this.#isLoaded = false;
      this.#lastContent = { sequence: 0, storedAtMs: 0 };
      this.#serverId = this.#bus.nc.info?.server_id;
      this.#options.onReset();
    }
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
    this.#noteConsumer();
    // The first messages may arrive before the answer to the request that asked for them; then their count of pending messages is newer.
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
   * Whether the stream is shorter than what was read of it. A leader that was elected a moment ago may not have applied all that
   * it has, so in a cluster it must say so several times in a row. Throws until then.
   */
  #hasLostEnd(lastSequence: number): boolean {
    const isShorter = lastSequence < this.#lastContent.sequence;
    this.#shorterTimes = isShorter ? this.#shorterTimes + 1 : 0;
    if (!isShorter || !this.#isReplicated || this.#shorterTimes >= BUS_LIMITS.feedLossConfirmations) return isShorter;
    throw new Error(`The leader of ${this.#options.stream} has not applied all that was read of it.`);
  }

  /**
   * Whether the stream still has the message that the feed handled last. A restarted server may have lost it and stored
   * others with the same sequence. A message that the stream has deleted for newer ones counts as lost, because the feed cannot
   * check it. In a cluster a change of server needs no check: a majority has the message.
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
      idle_heartbeat: nanos(BUS_LIMITS.feedHeartbeatMs),
      inactive_threshold: nanos(BUS_LIMITS.feedForgottenMs),
      headers_only: headersOnly ?? false,
      mem_storage: true,
      num_replicas: 1,
    };
  }

  #noteConsumer(): void {
    this.#consumerReceivedAt = performance.now();
    this.receivedAt = this.#consumerReceivedAt;
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
        // The feed has started over meanwhile.
        if (this.#isStopped || !this.#isLoaded || this.#sequence < from - 1) return;
        this.receivedAt = performance.now();
        for (const message of messages) this.#take(message);
        if ((messages.at(-1)?.pending ?? 0) > 0) continue;
        this.behind = 0;
        await new Promise((resolve) => setTimeout(resolve, BUS_LIMITS.feedReadPauseMs));
      }
    } catch {
      // No copy has answered: the next turn asks again.
    } finally {
      this.#isReading = false;
    }
  }

  #receive(message: Msg): void {
    this.#noteConsumer();
    if (message.headers?.code === 100) return this.#receiveControl(message, message.headers);
    // A message without a place in the stream is a refusal of the server, for example of a consumer it has deleted.
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

  /** A message in its turn; one that the feed has read already comes again from a consumer that was begun before. */
  #take({ subject, data, headers, sequence, storedAtMs, pending }: FeedMessage): void {
    if (sequence <= this.#sequence) return;
    this.#sequence = sequence;
    // Beats may be left from a time in which the stream had more copies.
    if (isBeat(subject, this.#options.beats)) return this.beats?.take({ subject, headers });
    this.#lastContent = { sequence, storedAtMs };
    try {
      this.#options.onMessage({ subject, data, headers, sequence, storedAtMs, pending });
    } catch (error) {
      this.#options.log.warn({ err: error, subject }, "a message of a feed was not understood");
    }
  }

  /** Flow control is answered, or the server stops sending; an idle heartbeat says how many messages there were. */
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
    // Without a reader the server deletes it by itself, only later.
    this.#bus.jsm.consumers.delete(this.#options.stream, name).catch(() => undefined);
  }
}

interface Place {
  readonly sequence: number;
  readonly delivered: number;
  readonly storedAtMs: number;
  readonly pending: number;
}

/**
 * A message's place, from its reply subject: `$JS.ACK.<stream>.<consumer>.<tries>.<sequence>.<delivered>.<nanoseconds>.<pending>`,
 * with `<domain>.<account>` before the stream and one more token at the end on newer servers.
 */
function parsePlace(reply: string | undefined): Place | undefined {
  if (reply === undefined || !reply.startsWith("$JS.ACK.")) return undefined;
  const tokens = reply.split(".");
  const at = tokens.length === 9 ? 5 : 7;
  return {
    sequence: Number(tokens[at]),
    delivered: Number(tokens[at + 1]),
    storedAtMs: Number(tokens[at + 2]) / 1e6,
    pending: Number(tokens[at + 3]),
  };
}
