/** One request under way that could not be answered at once, from its headers to its answer; answered at most once. */
import type { HttpResponse } from "uWebSockets.js";
import type { ErrorCode } from "../contract/errors.ts";
import { LIMITS } from "../limits.ts";
import type { RequestFacts } from "./facts.ts";
import { type Answer, writeAnswer } from "./response.ts";

export class Exchange {
  readonly res: HttpResponse;
  readonly facts: RequestFacts;
  readonly startedAtMs: number = performance.now();
  /** When the request is given up, on the clock of `performance.now()`. */
  deadlineMs: number;
  /** Called when the deadline passes; replaced by whoever is waiting for something else. */
  onDeadline: () => void = () => undefined;
  /** Called when the client went away. */
  onGone: () => void = () => undefined;
  /** Of the answer; 0 while there is none, and for good when the client went away before. */
  status = 0;
  /** Of an answer that refuses. */
  code: ErrorCode | undefined;
  #isOver = false;
  readonly #isDraining: () => boolean;
  readonly #onOver: (exchange: Exchange) => void;

  constructor(
    res: HttpResponse,
    facts: RequestFacts,
    deps: { readonly isDraining: () => boolean; readonly onOver: (exchange: Exchange) => void },
  ) {
    this.res = res;
    this.facts = facts;
    this.deadlineMs = this.startedAtMs + LIMITS.requestTimeoutMs;
    this.#isDraining = deps.isDraining;
    this.#onOver = deps.onOver;
    res.onAborted(() => {
      if (this.#isOver) return;
      this.#isOver = true;
      this.onGone();
      this.#onOver(this);
    });
  }

  /** Answered, or the client is gone: nothing may be written any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Writes the answer unless the exchange is over. `close` ends the connection as well, as for an unread body. */
  answer(answer: Answer, options: { readonly close?: boolean } = {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.status = answer.status;
    this.code = answer.code;
    const close = options.close === true || this.#isDraining();
    writeAnswer(this.res, answer, { isHead: this.facts.method === "HEAD", close });
    this.#onOver(this);
  }
}

/** All exchanges under way: bounded in number, looked over for deadlines, waited for at shutdown. */
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
      const timer = setTimeout(resolve, timeoutMs);
      this.#onEmpty = resolve;
      await promise;
      clearTimeout(timer);
    }
    clearInterval(this.#sweep);
  }

  #lookOver(): void {
    const nowMs = performance.now();
    for (const exchange of this.#open) {
      if (nowMs > exchange.deadlineMs) exchange.onDeadline();
    }
  }
}
