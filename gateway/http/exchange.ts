/** One request that the server could not answer at once, from its headers to its answer. An exchange has at most one answer. */

import type { HttpResponse } from "uWebSockets.js";
import type { Registry } from "prom-client";
import { addressBlock } from "../../services/bus/address-block.ts";
import { every } from "../../services/runtime/every.ts";
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

interface ExchangeDeps {
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
  /** When the server abandons the request, by `performance.now()`. */
  deadlineMs: number;
  /** Called when the deadline passes. Each wait of the request sets its own function. */
  onDeadline: () => void = () => undefined;
  /** Called when the client has closed the connection. */
  onGone: () => void = () => undefined;
  /**
   * The status of the answer; of one that the server has broken off, the status of the error. 0 before the answer, and when the
   * client closed the connection before it.
   */
  status = 0;
  /** The code of an error answer. */
  code: ErrorCode | undefined;
  /** Whether the server has identified the caller. */
  isKnownCaller = false;
  /** Whether the server reads the body. Then `Connections` must recognise the request's connection (`connections.ts`). */
  readsBody = false;
  /** Whether bytes of the body may still arrive. Then the connection must close with the answer. */
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

  /** The counts of requests whose body has not arrived. */
  get unread(): UnreadBodies {
    return this.#deps.unread;
  }

  /** Takes a slot until the request ends, one for known callers if the caller is known. False when there is no free slot. */
  takeSlot(): boolean {
    if (this.#isOver) return true;
    const wanted = this.isKnownCaller ? "known" : "unknown";
    if (!this.#deps.slots.exchange(this.#slot, wanted)) return false;
    this.#slot = wanted;
    return true;
  }

  /** The exchange is answered, or the client is gone: the server must write nothing more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The server shuts down: it does not wait for the rest of a body. */
  get isStopping(): boolean {
    return this.#deps.isDraining();
  }

  /** Writes the answer unless the exchange is over. `close` also closes the connection, for example after an unread body. */
  answer(answer: Answer, options: { readonly close?: boolean } = {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#releaseSlot();
    const isCrowded = !this.isKnownCaller && this.#deps.connections.isCrowded(() => this.facts.peer);
    const hidesBody = mayHideBody(this.facts.method, this.facts.headers["content-length"] !== undefined);
    const close = options.close === true || hidesBody || isCrowded || this.#deps.isDraining();
    // A crowded gateway sends no files: a file waits longest, and its connection cannot close before all of it has arrived.
    const sent = isCrowded && typeof answer.body === "object" ? errorAnswer("busy", this.facts.requestId) : answer;
    this.status = sent.status;
    this.code = sent.code;
    // In the turn after the request (`answer-writer.ts`, `connections.ts`): a large answer may close its connection during the
    // write, and `Connections` cannot detect that an answer without a body was written.
    setImmediate(() => {
      if (this.#isGone) this.#deps.onOver(this);
      else this.#write(sent, { close, bodyFollows: !isCrowded && this.#bodyFollows() });
    });
  }

  /** Writes the head of an answer whose body follows in pieces. False when the exchange is over. */
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

  /** False when the socket has not accepted the piece. The exchange calls `onTaken` when it has. */
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

  /** Closes the connection in the middle of an answer. In log and metrics the request then ends with this error. */
  breakOff(code: ErrorCode): void {
    if (this.#isOver) return;
    this.status = ERRORS[code].status;
    this.code = code;
    this.res.close();
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

  /** The block of addresses under which `Connections` counts the connection. */
  #block(): string {
    return addressBlock(this.facts.peer);
  }
}

/**
 * All exchanges under way. The class checks their deadlines and, at shutdown, waits for them. The bounds on slots and on unread
 * bodies limit their number. Unknown callers that wait for a proof have no slot: there is at most one of each connection.
 */
export class Exchanges {
  readonly #open = new Set<Exchange>();
  readonly #stopSweeps: () => void;
  #onEmpty: (() => void) | undefined;

  constructor() {
    this.#stopSweeps = every(LIMITS.sweepIntervalMs, () => this.#checkDeadlines());
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

  /** Resolves when no exchange is open, or after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.#open.size > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onEmpty = resolve;
      await within(promise, timeoutMs);
    }
    this.#stopSweeps();
  }

  /** Abandons all exchanges under way, and returns their number. */
  abandonAll(): number {
    const { size } = this.#open;
    for (const exchange of this.#open) exchange.onDeadline();
    return size;
  }

  #checkDeadlines(): void {
    const nowMs = performance.now();
    for (const exchange of this.#open) {
      if (nowMs > exchange.deadlineMs) exchange.onDeadline();
    }
  }
}

/** The operation of a request without a route. */
export const NO_OPERATION = "none";
/** The code of an answer that is no error. */
const NO_CODE = "none";
const FAULTS: readonly ErrorCode[] = ["busy", "unavailable", "replica_stale", "internal_error"];
/** The status of a request whose client closed the connection before the answer. */
const CLIENT_GONE = "client_gone";
/** The codes of requests without a route. */
const UNROUTED: readonly ErrorCode[] = [
  "path_not_found",
  "trailing_slash_missing",
  "method_not_allowed",
  "invalid_request",
  "length_required",
];

const seriesOfCode = (operation: string, code: ErrorCode) => ({
  operation,
  status: String(ERRORS[code].status),
  code,
});

/** The answers that a row declares, those of faults, and no answer. */
function seriesOf({ operationId: operation, replies, errors = [] }: Route) {
  const good = [...Object.keys(replies), CLIENT_GONE].map((status) => ({ operation, status, code: NO_CODE }));
  const codes = [...new Set([...errors, ...FAULTS])];
  return [...good, ...codes.map((code) => seriesOfCode(operation, code))];
}

/** The metrics of requests that are not answered from memory. Those of polls are in `gateway/read-model/polls.ts`. */
export class RequestMetrics {
  readonly #requests: Count<"operation" | "status" | "code">;
  readonly #seconds: Duration<"operation">;

  constructor(metrics: Registry | undefined, routes: readonly Route[] = []) {
    this.#requests = addCount(metrics, {
      name: "gateway_requests_total",
      help: "Requests not answered from memory, by operation, status and error code.",
      labels: { operation: [], status: [], code: [] },
      series: [...routes.flatMap(seriesOf), ...UNROUTED.map((code) => seriesOfCode(NO_OPERATION, code))],
    });
    this.#seconds = addDuration(metrics, {
      name: "gateway_request_duration_seconds",
      help: "From a request's headers to its answer, without those answered from memory.",
      // No series before the first request of an operation: they would only make scrapes longer.
      labels: { operation: [] },
    });
  }

  /** Counts a request that has ended. `status` is 0 when the client closed the connection before the answer. */
  done(operation: string, status: number, code: string | undefined, durationMs: number): void {
    this.refused(operation, status, code);
    this.#seconds.observe({ operation }, durationMs / 1_000);
  }

  /** Counts a request that the server answered at once, before any work. */
  refused(operation: string, status: number, code: string | undefined): void {
    this.#requests.add({ operation, status: status === 0 ? CLIENT_GONE : String(status), code: code ?? NO_CODE });
  }
}
