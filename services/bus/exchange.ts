/**
 * All messages of one request between a caller and the processes of a service. The processes send theirs to the inbox of the
 * request.
 *
 *   caller ── request, to one process of the queue group
 *          ◄── {working}                 after 150 ms, and again and again until the answer
 *          ◄── {reply} or {refusal}
 *   nothing for 400 ms:
 *   caller ── probe, to every process of the service
 *          ◄── {working}                 from the process that has the request
 *          ◄── {offer: subject}          from each other one that has room
 *          ── the same request, to the first that offers
 *          ◄── {claimed}                 another process carries it out, and may carry it out only once
 *
 * A process that does not reach what it needs answers {refusal, cutOff: subject}: another one may reach it. The caller
 * then sends a probe at once, and takes no offer of that process. Without another offer it takes the refusal.
 *
 * This file is the caller's side; `serve` in `operation.ts` is the other side. The queue group alone is not enough: a
 * server prefers a process that is connected to it, even a stalled one.
 */

import { createInbox, errors, type Msg, type NatsConnection } from "nats";
import type { Registry } from "prom-client";
import { addReadCount } from "../runtime/metrics.ts";
import { deadlineHeaders } from "./deadline.ts";
import { BUS_LIMITS } from "./limits.ts";
import type { BusRefusal } from "./refusals.ts";

export type Interim = { readonly working: true } | { readonly offer: string } | { readonly claimed: true };
export type Answer =
  | { readonly reply: unknown }
  /** `cutOff` is the process that is cut off from what it needs, by the subject of its offers. */
  | { readonly refusal: BusRefusal; readonly cutOff?: string };

/** Where the processes that serve an operation receive probes. */
export const probeSubject = (subject: string): string => `again.${subject}`;

interface Exchanged {
  readonly answer: Answer;
  /** Whether more than one process has received the request. */
  readonly isRepeated: boolean;
}

interface Asked {
  readonly subject: string;
  readonly payload: string;
  readonly timeoutMs: number;
}

/** Resolves to the answer; rejects when no process serves the subject, when the time is over, or when the bus is down. */
export async function exchange(nc: NatsConnection, asked: Asked): Promise<Exchanged> {
  return await exchangesOf(nc).begin(asked);
}

const known = new WeakMap<NatsConnection, Exchanges>();

/** All exchanges of a connection: they share one inbox. */
export function exchangesOf(nc: NatsConnection): Exchanges {
  const exchanges = known.get(nc) ?? new Exchanges(nc);
  known.set(nc, exchanges);
  return exchanges;
}

class Exchanges {
  readonly #nc: NatsConnection;
  readonly #inbox = createInbox();
  /** It needs no limit: each exchange ends with its deadline, and each caller limits its requests. */
  readonly #waiting = new Map<string, Exchange>();
  readonly #repeated = new Map<string, number>();
  #begun = 0;
  #isListening = false;
  #whyNot: () => Error | undefined = () => undefined;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /** How often a request was sent to another process, by subject. */
  get repeated(): ReadonlyMap<string, number> {
    return this.#repeated;
  }

  /** Requests fail at once while `whyNot` returns an error. */
  refuseWhile(whyNot: () => Error | undefined): void {
    this.#whyNot = whyNot;
  }

  async begin(asked: Asked): Promise<Exchanged> {
    const error = this.#whyNot();
    if (error !== undefined) throw error;
    this.#listen();
    this.#begun += 1;
    const id = this.#begun.toString(36);
    const waiting = new Exchange(this.#nc, asked, `${this.#inbox}.${id}`, () => {
      this.#repeated.set(asked.subject, (this.#repeated.get(asked.subject) ?? 0) + 1);
    });
    this.#waiting.set(id, waiting);
    try {
      return await waiting.ended;
    } finally {
      this.#waiting.delete(id);
    }
  }

  /** Fails all exchanges that wait. */
  fail(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.fail(error);
  }

  #listen(): void {
    if (this.#isListening) return;
    this.#nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#waiting.get(message.subject.slice(this.#inbox.length + 1))?.receive(message);
        else this.fail(error);
      },
    });
    this.#isListening = true;
    void this.#nc.closed().then(() => this.fail(new errors.ClosedConnectionError()));
  }
}

class Exchange {
  readonly ended: Promise<Exchanged>;
  readonly #nc: NatsConnection;
  readonly #asked: Asked;
  readonly #reply: string;
  readonly #onRepeated: () => void;
  readonly #headers;
  readonly #deadlineMs: number;
  /** The time at which the caller has received nothing for too long. */
  #silentAtMs: number;
  #probes = 0;
  /** The caller has sent a probe, and no process has answered it. */
  #isProbing = false;
  #repetitions = 0;
  #isClaimed = false;
  /** The processes that are cut off, and the answer of the last one. */
  readonly #cutOff = new Set<string>();
  #refused: Answer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #resolve!: (exchanged: Exchanged) => void;
  #reject!: (error: unknown) => void;

  constructor(nc: NatsConnection, asked: Asked, reply: string, onRepeated: () => void) {
    this.#nc = nc;
    this.#asked = asked;
    this.#reply = reply;
    this.#onRepeated = onRepeated;
    this.#headers = deadlineHeaders(nc, asked.timeoutMs);
    const nowMs = performance.now();
    this.#deadlineMs = nowMs + asked.timeoutMs;
    this.#silentAtMs = nowMs + BUS_LIMITS.silenceMs;
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#wait(nowMs);
    this.#send(asked.subject);
  }

  receive(message: Msg): void {
    if (message.data.length === 0 && message.headers?.code === 503) return this.#foundNone();
    let body: Interim | Answer;
    try {
      body = message.json<Interim | Answer>();
    } catch (error) {
      return this.fail(error);
    }
    if ("working" in body) this.#received();
    else if ("offer" in body) this.#take(body.offer);
    else if ("claimed" in body) this.#foundClaimed();
    else if ("cutOff" in body && body.cutOff !== undefined) this.#foundCutOff(body, body.cutOff);
    else this.#end(body);
  }

  #end(answer: Answer): void {
    clearTimeout(this.#timer);
    this.#resolve({ answer, isRepeated: this.#repetitions > 0 });
  }

  fail(error: unknown): void {
    clearTimeout(this.#timer);
    this.#reject(error);
  }

  /**
   * The server found no receiver. Before the first probe, no process has received the request. After a probe, the process with
   * the request may have ended, and the caller waits on.
   */
  #foundNone(): void {
    if (this.#probes === 0) this.fail(new errors.NoRespondersError(this.#asked.subject));
  }

  /** The process that has claimed the request answers soon, sends progress messages, or has ended. */
  #foundClaimed(): void {
    this.#isClaimed = true;
    this.#received();
  }

  #foundCutOff(answer: Answer, subject: string): void {
    this.#cutOff.add(subject);
    this.#refused = answer;
    if (!this.#isRefusedByAll()) return;
    if (!this.#mayProbe()) this.#end(answer);
    else if (!this.#isProbing) this.#probe(performance.now());
  }

  /** Whether each process that has received the request is cut off. */
  #isRefusedByAll(): boolean {
    return this.#cutOff.size > this.#repetitions;
  }

  #received(): void {
    this.#isProbing = false;
    this.#silentAtMs = performance.now() + (this.#isClaimed ? BUS_LIMITS.claimedSilenceMs : BUS_LIMITS.silenceMs);
  }

  #take(offer: string): void {
    if (!this.#isProbing || this.#cutOff.has(offer)) return;
    this.#received();
    this.#repetitions += 1;
    this.#onRepeated();
    this.#send(offer);
  }

  #send(subject: string): void {
    try {
      this.#nc.publish(subject, this.#asked.payload, { reply: this.#reply, headers: this.#headers });
    } catch (error) {
      this.fail(error);
    }
  }

  #wait(nowMs: number): void {
    const isSilenceCounted = this.#isClaimed || this.#mayProbe();
    const untilMs = isSilenceCounted ? Math.min(this.#silentAtMs, this.#deadlineMs) : this.#deadlineMs;
    // If this process was stalled, the answer may already wait in its socket: the next turn reads it first.
    this.#timer = setTimeout(() => setImmediate(() => this.#check()), Math.max(0, untilMs - nowMs));
  }

  #mayProbe(): boolean {
    return !this.#isClaimed && this.#repetitions < BUS_LIMITS.repetitions;
  }

  #check(): void {
    const nowMs = performance.now();
    const isLate = nowMs >= this.#deadlineMs;
    if (!isLate && nowMs < this.#silentAtMs) return this.#wait(nowMs);
    if (this.#refused !== undefined && this.#isRefusedByAll()) return this.#end(this.#refused);
    if (isLate || this.#isClaimed) return this.fail(new errors.TimeoutError());
    if (this.#mayProbe()) this.#probe(nowMs);
    this.#wait(nowMs);
  }

  #probe(nowMs: number): void {
    this.#probes += 1;
    this.#isProbing = true;
    this.#silentAtMs = nowMs + BUS_LIMITS.silenceMs;
    try {
      this.#nc.publish(probeSubject(this.#asked.subject), "", { reply: this.#reply });
    } catch (error) {
      this.fail(error);
    }
  }
}

/**
 * A metric: how often a request was sent to another process because the first one did not answer, for each of the
 * `operations`.
 */
export function addRepeatedCount(
  metrics: Registry | undefined,
  nc: NatsConnection,
  operations: () => readonly string[],
): void {
  addReadCount(
    metrics,
    {
      name: "bus_requests_repeated_total",
      help: "Requests that were sent to another process because the first one did not answer, by operation.",
      labels: ["operation"],
    },
    () => {
      const { repeated } = exchangesOf(nc);
      return operations().map((operation) => [{ operation }, repeated.get(operation) ?? 0] as const);
    },
  );
}
