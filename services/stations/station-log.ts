/** Reading and appending commits. One append per station is under way at a time; the log decides who was first (I5). */

import { createInbox, headers, type Msg, type Subscription } from "nats";
import { type Commit, decodeCommit, encodeCommit } from "../../machines/station/commit.ts";
import { type Bus, BusDownError } from "../bus/connection.ts";
import { STATION_LOG } from "../bus/streams.ts";
import { stationLogSubject } from "../bus/subjects.ts";
import { turnPublisher } from "../bus/turn-publisher.ts";
import { STATION_LIMITS } from "./limits.ts";
import { encodeWake, WAKE_HEADER, wakeOf } from "./wake.ts";

export interface StoredCommit {
  readonly commit: Commit;
  readonly sequence: number;
}

/** `unknown`: the append may or may not have taken effect; it has to be read back. */
export type AppendOutcome =
  | { readonly kind: "stored"; readonly sequence: number }
  | { readonly kind: "conflict" }
  | { readonly kind: "unknown"; readonly cause: unknown };

/** JetStream's error for an expected sequence that is not the subject's last one. */
const WRONG_LAST_SEQUENCE = 10071;
/** JetStream's error for a subject without a message. */
const NO_MESSAGE = 10037;

interface Pending {
  readonly settle: (outcome: AppendOutcome) => void;
  readonly deadline: number;
}

export class StationLog {
  readonly #bus: Bus;
  readonly #inbox = createInbox();
  readonly #acks: Subscription;
  readonly #sweep: NodeJS.Timeout;
  readonly #stopListening: () => void;
  /** In the order of their deadlines, because all wait equally long. */
  readonly #pending = new Map<string, Pending>();
  #count = 0;

  constructor(bus: Bus) {
    this.#bus = bus;
    // One inbox and one sweep for all appends: the client's own request costs a timer and several promises each.
    this.#acks = bus.nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#acknowledge(message);
      },
    });
    this.#sweep = setInterval(() => this.#expire(), STATION_LIMITS.appendSweepMs);
    this.#stopListening = bus.onChange((isUp) => {
      if (!isUp) this.#abandon();
    });
  }

  /**
   * The newest commit of a station, or null. `fromLeader` asks the stream's leader instead of any replica: after a
   * conflict the answer must not be the stale one again. Rejects when the server does not answer.
   */
  async load(stationId: number, fromLeader = false): Promise<StoredCommit | null> {
    const subject = stationLogSubject(stationId);
    if (fromLeader) return await this.#loadFromLeader(subject);
    const message = await this.#bus.nc.request(`$JS.API.DIRECT.GET.${STATION_LOG.name}.${subject}`, "", {
      timeout: STATION_LIMITS.loadMs,
    });
    const code = message.headers?.code ?? 0;
    if (code === 404) return null;
    if (code !== 0) throw new Error(`JetStream answers ${message.headers?.status} when asked for ${subject}.`);
    return { commit: decodeCommit(message.string()), sequence: Number(message.headers?.get("Nats-Sequence")) };
  }

  async #loadFromLeader(subject: string): Promise<StoredCommit | null> {
    const answer = await this.#bus.nc.request(
      `$JS.API.STREAM.MSG.GET.${STATION_LOG.name}`,
      JSON.stringify({ last_by_subj: subject }),
      { timeout: STATION_LIMITS.loadMs },
    );
    const { message, error } = answer.json<StoredMessageAnswer>();
    if (error?.err_code === NO_MESSAGE) return null;
    if (message === undefined) throw new Error(error?.description ?? `JetStream has no answer about ${subject}.`);
    return { commit: decodeCommit(Buffer.from(message.data, "base64").toString()), sequence: message.seq };
  }

  /** Appends a commit if the station's newest one still has `expectedSequence` (0: none). Never rejects. */
  append(stationId: number, expectedSequence: number, commit: Commit): Promise<AppendOutcome> {
    return new Promise((settle) => {
      if (!this.#bus.isUp()) return settle({ kind: "unknown", cause: new BusDownError() });
      const conditions = headers();
      conditions.set("Nats-Expected-Last-Subject-Sequence", String(expectedSequence));
      conditions.set(WAKE_HEADER, encodeWake(wakeOf(commit.state)));
      this.#count += 1;
      const token = String(this.#count);
      const options = { reply: `${this.#inbox}.${token}`, headers: conditions };
      turnPublisher(this.#bus.nc).publish(stationLogSubject(stationId), encodeCommit(commit), options, (cause) => {
        this.#pending.delete(token);
        settle({ kind: "unknown", cause });
      });
      this.#pending.set(token, { settle, deadline: performance.now() + STATION_LIMITS.appendMs });
    });
  }

  close(): void {
    clearInterval(this.#sweep);
    this.#stopListening();
    this.#acks.unsubscribe();
    this.#abandon();
  }

  #acknowledge(message: Msg): void {
    const token = message.subject.slice(this.#inbox.length + 1);
    const pending = this.#pending.get(token);
    if (pending === undefined) return;
    this.#pending.delete(token);
    pending.settle(readAcknowledgement(message));
  }

  #expire(): void {
    const now = performance.now();
    for (const [token, pending] of this.#pending) {
      if (pending.deadline > now) return;
      this.#pending.delete(token);
      pending.settle({ kind: "unknown", cause: new Error("The append was not acknowledged in time.") });
    }
  }

  #abandon(): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { settle } of pending) settle({ kind: "unknown", cause: new BusDownError() });
  }
}

interface JetStreamFault {
  readonly err_code?: number;
  readonly description?: string;
}

interface StoredMessageAnswer {
  readonly message?: { readonly seq: number; readonly data: string };
  readonly error?: JetStreamFault;
}

interface Acknowledgement {
  readonly seq?: number;
  readonly error?: JetStreamFault;
}

function readAcknowledgement(message: Msg): AppendOutcome {
  if (message.headers?.code === 503) return { kind: "unknown", cause: new Error("JetStream does not answer.") };
  try {
    const { seq, error } = message.json<Acknowledgement>();
    if (error?.err_code === WRONG_LAST_SEQUENCE) return { kind: "conflict" };
    if (error === undefined && seq !== undefined) return { kind: "stored", sequence: seq };
    // Among these are the refusals of a subject that still has an append in flight (10163, 10164).
    return { kind: "unknown", cause: new Error(error?.description ?? "JetStream's answer was not understood.") };
  } catch (cause) {
    return { kind: "unknown", cause };
  }
}
