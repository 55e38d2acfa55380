/** One request under way that could not be answered at once, from its headers to its answer; answered at most once. */

import type { HttpResponse } from "uWebSockets.js";
import type { Registry } from "prom-client";
import { addressBlock } from "../../services/bus/address-block.ts";
import { addCount, addDuration, type Count, type Duration } from "../../services/runtime/metrics.ts";
import { within } from "../../services/runtime/repeat.ts";
import { LIMITS } from "../limits.ts";
import { type AnswerWriter, writeHead } from "./answer-writer.ts";
import type { Connections } from "./connections.ts";
import { ERRORS, type ErrorCode } from "./errors.ts";
import { RequestSlots, type Slot, UnreadBodies } from "./request-bounds.ts";
import { mayHideBody, type RequestFacts } from "./request-head.ts";
import { type Answer, errorAnswer } from "./response.ts";
import type { Route } from "./route.ts";

export interface ExchangeDeps {
  readonly isDraining: () => boolean;
  readonly connections: Pick<Connections, "isCrowded" | "unused">;
  readonly writer: AnswerWriter;
  readonly slots: RequestSlots;
  readonly unread: UnreadBodies;
  readonly onOver: (exchange: Exchange) => void;
}

export class Exchange {
  readonly res: HttpResponse;
  readonly facts: RequestFacts;
  readonly startedAtMs: number = performance.now();
  /** When the request is given up, on the clock of `performance.now()`. */
  deadlineMs: number;
  /** Called when the deadline passes. Each later wait of the request replaces it by its own. */
  onDeadline: () => void = () => undefined;
  /** Called when the client went away. */
  onGone: () => void = () => undefined;
  /** Of the answer; 0 while there is none, and for good when the client went away before. */
  status = 0;
  /** The code of an error answer. */
  code: ErrorCode | undefined;
  /** Whether the caller has shown who it is. */
  isKnownCaller = false;
  /** Whether the body was read, so that an unused connection must be recognised (`connections.ts`). */
  readsBody = false;
  /** Whether bytes of the body may still arrive, so that the connection must end with the answer. */
  isBodyUnread = false;
  #isOver = false;
  #isGone = false;
  #slot: Slot = "none";
  readonly #deps: ExchangeDeps;

  constructor(res: HttpResponse, facts: RequestFacts, deps: ExchangeDeps) {
    this.res = res;
    this.facts = facts;
    this.deadlineMs = this.startedAtMs + LIMITS.requestTimeoutMs;
    this.#deps = deps;
    res.onAborted(() => {
      this.#isGone = true;
      this.#recognise(true);
      if (this.#isOver) return;
      this.#isOver = true;
      this.onGone();
      this.#releaseSlot();
      this.#deps.onOver(this);
    });
  }

  /** Where a request is counted whose body has not arrived. */
  get unread(): UnreadBodies {
    return this.#deps.unread;
  }

  /** Takes a slot until the request is over, for a known caller one of theirs; false when there is none. */
  takeSlot(): boolean {
    if (this.#isOver) return true;
    const wanted = this.isKnownCaller ? "known" : "unknown";
    if (!this.#deps.slots.exchange(this.#slot, wanted)) return false;
    this.#slot = wanted;
    return true;
  }

  /** Answered, or the client is gone: nothing may be written any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The server stops, and what has not come by now is not waited for. */
  get isStopping(): boolean {
    return this.#deps.isDraining();
  }

  /** Writes the answer unless the exchange is over. `close` ends the connection as well, as for an unread body. */
  answer(answer: Answer, options: { readonly close?: boolean } = {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#releaseSlot();
    const isCrowded = !this.isKnownCaller && this.#deps.connections.isCrowded(() => this.#block());
    const hidesBody = mayHideBody(this.facts.method, this.facts.headers["content-length"] !== undefined);
    const close = options.close === true || hidesBody || isCrowded || this.#deps.isDraining();
    // A file is the first to wait, and its connection cannot be closed before all of the file has arrived.
    const given = isCrowded && typeof answer.body === "object" ? errorAnswer("busy", this.facts.requestId) : answer;
    this.status = given.status;
    this.code = given.code;
    // Not within the turn of the request (`answer-writer.ts`, `connections.ts`): a large answer may close its connection
    // while it is written, and an answer without a body leaves no trace of having been written.
    setImmediate(() => {
      if (this.#isGone) this.#deps.onOver(this);
      else this.#write(given, { close, bodyFollows: !isCrowded && this.#bodyFollows() });
    });
  }

  /** Writes the head of an answer whose body follows piece by piece. False when the exchange is over. */
  beginStream(answer: Answer, onTaken: () => void): boolean {
    if (this.#isOver) return false;
    this.status = answer.status;
    this.res.onWritable(() => {
      onTaken();
      return true;
    });
    this.res.cork(() => writeHead(this.res, answer));
    return true;
  }

  /** False when the client has not taken it: `onTaken` is called when it has. */
  writePiece(piece: string): boolean {
    if (this.#isOver) return true;
    let isTaken = true;
    this.res.cork(() => {
      isTaken = this.res.write(piece);
    });
    return isTaken;
  }

  endStream(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#releaseSlot();
    const close = this.#deps.isDraining();
    this.res.cork(() => this.res.end(undefined, close));
    this.#deps.onOver(this);
  }

  /** Ends the connection, whatever of the answer has arrived. */
  breakOff(): void {
    if (!this.#isOver) this.res.close();
  }

  #bodyFollows(): boolean {
    return this.readsBody ? this.isBodyUnread : Number(this.facts.headers["content-length"] ?? 0) > 0;
  }

  #write(answer: Answer, { close, bodyFollows }: { readonly close: boolean; readonly bodyFollows: boolean }): void {
    const mustRecognise = this.readsBody && this.#deps.connections.unused.has(this.#block());
    const hasBody = answer.body !== undefined && answer.body !== "";
    this.#deps.writer.write(this.res, answer, {
      isHead: this.facts.method === "HEAD",
      close: close || (mustRecognise && !hasBody),
      bodyFollows,
      isKnownCaller: this.isKnownCaller,
      onWritten: mustRecognise ? (isClosed) => this.#recognise(isClosed) : undefined,
    });
    this.#deps.onOver(this);
  }

  #releaseSlot(): void {
    this.#deps.slots.release(this.#slot);
    this.#slot = "none";
  }

  #recognise(isClosed: boolean): void {
    if (this.readsBody) this.#deps.connections.unused.recognise(this.#block(), isClosed);
  }

  /** The other end of the connection as `Connections` counts it. */
  #block(): string {
    return addressBlock(this.facts.peer);
  }
}

/** All exchanges under way: checked for deadlines, waited for at shutdown. Slots and bodies bound their number. */
export class Exchanges {
  readonly #open = new Set<Exchange>();
  readonly #sweep: NodeJS.Timeout;
  #onEmpty: (() => void) | undefined;

  constructor() {
    this.#sweep = setInterval(() => this.#lookOver(), LIMITS.sweepIntervalMs);
  }

  get size(): number {
    return this.#open.size;
  }

  add(exchange: Exchange): void {
    this.#open.add(exchange);
  }

  remove(exchange: Exchange): void {
    this.#open.delete(exchange);
    if (this.#open.size === 0) this.#onEmpty?.();
  }

  /** Resolves when no exchange is open any more, at the latest after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.#open.size > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onEmpty = resolve;
      await within(promise, timeoutMs);
    }
    clearInterval(this.#sweep);
  }

  /** Gives up what is still under way, and returns how many there were. */
  giveUp(): number {
    const { size } = this.#open;
    for (const exchange of this.#open) exchange.onDeadline();
    return size;
  }

  #lookOver(): void {
    const nowMs = performance.now();
    for (const exchange of this.#open) {
      if (nowMs > exchange.deadlineMs) exchange.onDeadline();
    }
  }
}

/** Of a request that no route takes. */
export const NO_OPERATION = "none";
/** The code of an answer that is no refusal. */
const NO_CODE = "none";
const FAULTS: readonly ErrorCode[] = ["busy", "unavailable", "replica_stale", "internal_error"];

/** The answers that a row declares, and those of faults. */
function seriesOf({ operationId: operation, replies, errors = [] }: Route) {
  const good = Object.keys(replies).map((status) => ({ operation, status, code: NO_CODE }));
  const codes = [...new Set([...errors, ...FAULTS])];
  return [...good, ...codes.map((code) => ({ operation, status: String(ERRORS[code].status), code }))];
}

/** What the server counts of requests that are not answered from memory; polls are counted in `gateway/read-model/polls.ts`. */
export class RequestMetrics {
  readonly #requests: Count<"operation" | "status" | "code">;
  readonly #seconds: Duration<"operation">;

  constructor(metrics: Registry | undefined, routes: readonly Route[] = []) {
    this.#requests = addCount(metrics, {
      name: "gateway_requests_total",
      help: "Requests not answered from memory, by operation, status and error code.",
      labels: { operation: [], status: [], code: [] },
      series: routes.flatMap(seriesOf),
    });
    this.#seconds = addDuration(metrics, {
      name: "gateway_request_duration_seconds",
      help: "From a request's headers to its answer, without those answered from memory.",
      // Series of operations that were never requested would only make the answer to a scrape longer.
      labels: { operation: [] },
    });
  }

  /** A request is over; `status` 0 when the client went away before. */
  done(operation: string, status: number, code: string | undefined, durationMs: number): void {
    this.refused(operation, status, code);
    this.#seconds.observe({ operation }, durationMs / 1_000);
  }

  /** A request was answered at once, before any work for it began. */
  refused(operation: string, status: number, code: string | undefined): void {
    this.#requests.add({ operation, status: status === 0 ? "client_gone" : String(status), code: code ?? NO_CODE });
  }
}
