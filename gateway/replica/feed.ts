/**
 * Follows one JetStream stream from memory's point of view: what the stream holds now, then every change, in order.
 *
 *   (start) ──► loading ──caught up──► following ──gap, silence──► resuming ──caught up──► following
 *                  ▲                                                  │
 *                  └── the stream was made anew, or too long away ◄───┘
 *
 * A push consumer with flow control carries it, handled here rather than by the client's ordered consumer, because a
 * million entries must load in seconds (no object per message beyond the client's own) and because the exact moment at
 * which the feed was last known to be complete decides whether the gateway may answer at all (design §2.2).
 */
import { AckPolicy, type ConsumerConfig, DeliverPolicy, type JetStreamManager } from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection, nanos, type Subscription } from "nats";
import { FEED_LIMITS } from "./limits.ts";

/** What a feed logs; pino fits. */
export interface FeedLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface FeedDeps {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  /** False while the connection is down: no attempt is made then. */
  isUp(): boolean;
  readonly log: FeedLog;
}

/** What a feed follows and where it delivers. An empty `data` is a deletion; `data` is only valid during the call. */
export interface FeedTarget {
  readonly stream: string;
  /** All subjects of the stream. */
  readonly filter: string;
  /** Everything known is void; a full load follows. */
  reset(): void;
  apply(subject: string, data: Uint8Array, sequence: number): void;
}

interface Following {
  readonly subscription: Subscription;
  consumerName: string;
  consumerSequence: number;
}

export class Feed {
  /** Sequence of the newest message applied. */
  sequence = 0;
  /** When this feed was last known to show everything the server had sent; minus infinity while it does not. */
  #completeAtMs = Number.NEGATIVE_INFINITY;
  readonly #deps: FeedDeps;
  readonly #target: FeedTarget;
  #following: Following | undefined;
  #heardAtMs = 0;
  #isCaughtUp = false;
  #isConfirming = false;
  #streamCreated = "";
  #stopped = false;
  #restarting = false;
  #watch: NodeJS.Timeout | undefined;
  readonly #waiting = new Set<{ readonly sequence: number; readonly wake: () => void }>();
  readonly #loaded = Promise.withResolvers<void>();

  constructor(deps: FeedDeps, target: FeedTarget) {
    this.#deps = deps;
    this.#target = target;
  }

  /** Follows from now on; resolves once everything that the stream holds was applied. */
  async start(): Promise<void> {
    this.#watch = setInterval(() => this.#look(), FEED_LIMITS.watchMs);
    await this.#restart("start");
    await this.#loaded.promise;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#watch);
    await this.#leave();
  }

  /** Milliseconds since the feed was known to be complete; infinity while it is not. */
  ageMs(nowMs: number): number {
    return nowMs - this.#completeAtMs;
  }

  isFresh(nowMs: number): boolean {
    return nowMs - this.#completeAtMs <= FEED_LIMITS.silenceMs;
  }

  /** Resolves true once the message with this sequence was applied, false when `timeoutMs` passes first. */
  async waitFor(sequence: number, timeoutMs: number): Promise<boolean> {
    if (this.sequence >= sequence) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const entry = { sequence, wake: () => resolve(true) };
    const timer = setTimeout(() => resolve(false), timeoutMs);
    this.#waiting.add(entry);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(entry);
    }
  }

  #onMessage(following: Following, message: Msg): void {
    if (following !== this.#following) return;
    const reply = message.reply ?? "";
    if (reply.startsWith("$JS.ACK.")) this.#onEntry(following, message, reply);
    else this.#onControl(following, message);
  }

  #onEntry(following: Following, message: Msg, reply: string): void {
    const tokens = reply.split(".");
    // With an account or a domain two tokens stand before the stream's name, and one may follow at the end.
    const at = tokens.length > 9 ? 7 : 5;
    const consumerSequence = Number(tokens[at + 1]);
    if (consumerSequence !== following.consumerSequence + 1) return this.#lost("a gap");
    following.consumerSequence = consumerSequence;
    const sequence = Number(tokens[at]);
    this.#target.apply(message.subject, message.data, sequence);
    this.sequence = sequence;
    if (this.#waiting.size > 0) this.#wake();
    this.#heard(tokens[at + 3] === "0");
  }

  #onControl(following: Following, message: Msg): void {
    if (message.headers?.code !== 100) return;
    if (message.reply) {
      message.respond();
      return;
    }
    const stalled = message.headers.get("Nats-Consumer-Stalled");
    if (stalled !== "") this.#deps.nc.publish(stalled);
    const sent = Number(message.headers.get("Nats-Last-Consumer") || following.consumerSequence);
    if (sent > following.consumerSequence) return this.#lost("a gap");
    this.#heard(stalled === "" && this.#isCaughtUp);
  }

  /**
   * The feed spoke. After a silence the first words may be old: they lay in a buffer while this process or the server
   * stood still. Only after a round trip through the server has everything before it arrived.
   */
  #heard(isComplete: boolean): void {
    const nowMs = Date.now();
    const wasSilent = nowMs - this.#heardAtMs > FEED_LIMITS.silenceMs;
    this.#heardAtMs = nowMs;
    if (wasSilent && !this.#isConfirming) this.#confirm();
    if (!isComplete) return;
    this.#isCaughtUp = true;
    if (this.#isConfirming) return;
    this.#completeAtMs = nowMs;
    this.#loaded.resolve();
  }

  #confirm(): void {
    const { nc, log } = this.#deps;
    const following = this.#following;
    this.#isConfirming = true;
    this.#completeAtMs = Number.NEGATIVE_INFINITY;
    void nc
      .flush()
      .then(() => {
        if (following !== this.#following) return;
        this.#isConfirming = false;
        if (this.#isCaughtUp) this.#heard(true);
      })
      .catch((error: unknown) => {
        log.warn({ err: error, stream: this.#target.stream }, "a feed could not be confirmed");
        if (following === this.#following) this.#lost("an unconfirmed feed");
      });
  }

  #wake(): void {
    for (const entry of this.#waiting) {
      if (entry.sequence <= this.sequence) entry.wake();
    }
  }

  #look(): void {
    if (this.#following !== undefined && Date.now() - this.#heardAtMs > FEED_LIMITS.resumeMs) this.#lost("silence");
  }

  #lost(reason: string): void {
    if (this.#stopped || this.#restarting) return;
    void this.#restart(reason);
  }

  /** Tries until the stream is followed again. Answers stop being given by the silence that this makes. */
  async #restart(reason: string): Promise<void> {
    this.#restarting = true;
    for (let attempt = 1; !this.#stopped; attempt += 1) {
      try {
        if (this.#deps.isUp()) {
          await this.#follow();
          if (reason !== "start")
            this.#deps.log.info({ stream: this.#target.stream, reason, attempt }, "a feed was resumed");
          break;
        }
      } catch (error) {
        if (attempt === 1) this.#deps.log.warn({ err: error, stream: this.#target.stream, reason }, "a feed is lost");
      }
      await new Promise((resolve) => setTimeout(resolve, FEED_LIMITS.retryMs));
    }
    this.#restarting = false;
  }

  async #follow(): Promise<void> {
    const { nc, jsm } = this.#deps;
    await this.#leave();
    const resumes = await this.#canResume();
    const inbox = createInbox();
    const following: Following = {
      consumerName: "",
      consumerSequence: 0,
      subscription: nc.subscribe(inbox, {
        callback: (error, message) => {
          if (error === null) this.#onMessage(following, message);
          else this.#lost("a subscription error");
        },
      }),
    };
    if (!resumes) {
      this.#target.reset();
      this.sequence = 0;
    }
    this.#isCaughtUp = false;
    this.#isConfirming = false;
    this.#following = following;
    this.#heardAtMs = Date.now();
    const info = await jsm.consumers.add(this.#target.stream, {
      ...consumerConfig(inbox, resumes ? this.sequence + 1 : null),
      filter_subject: this.#target.filter,
    });
    following.consumerName = info.name;
    // An empty stream sends nothing that could say so.
    if (info.num_pending === 0 && info.delivered.consumer_seq === following.consumerSequence) this.#heard(true);
  }

  /** A stream that was made anew, or that lost its end, must be read from its beginning. */
  async #canResume(): Promise<boolean> {
    const info = await this.#deps.jsm.streams.info(this.#target.stream);
    const isSame = info.created === this.#streamCreated && info.state.last_seq >= this.sequence;
    this.#streamCreated = info.created;
    return isSame && this.sequence > 0 && Date.now() - this.#heardAtMs < FEED_LIMITS.reloadMs;
  }

  async #leave(): Promise<void> {
    const following = this.#following;
    this.#following = undefined;
    if (following === undefined) return;
    following.subscription.unsubscribe();
    // The server forgets the consumer by itself when it cannot be reached now.
    if (following.consumerName !== "" && this.#deps.isUp()) {
      void this.#deps.jsm.consumers.delete(this.#target.stream, following.consumerName).catch(() => undefined);
    }
  }
}

function consumerConfig(inbox: string, fromSequence: number | null): Partial<ConsumerConfig> {
  return {
    deliver_subject: inbox,
    ack_policy: AckPolicy.None,
    max_deliver: 1,
    flow_control: true,
    idle_heartbeat: nanos(FEED_LIMITS.heartbeatMs),
    inactive_threshold: nanos(FEED_LIMITS.forgottenMs),
    mem_storage: true,
    num_replicas: 1,
    ...(fromSequence === null
      ? { deliver_policy: DeliverPolicy.LastPerSubject }
      : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: fromSequence }),
  };
}
