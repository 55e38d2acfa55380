/**
 * Reads a request body piece by piece, as its reader asks: between two pieces the connection is paused, so that a client
 * that sends faster than the file is stored waits. One piece of each upload is in memory, at most what the server reads of
 * a connection at once. Must be called before the first await of its request.
 */
import { addressBlock } from "../../services/bus/address-block.ts";
import { LIMITS } from "../limits.ts";
import type { Exchange } from "./exchange.ts";
import { Refusal } from "./handler-context.ts";
import { ClientGoneError } from "./read-body.ts";
import type { UnreadBody } from "./request-bounds.ts";

export interface StreamedBody {
  /** In order; ends by `body_too_large`, `request_timeout` or `ClientGoneError` where the body does. Read it once. */
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Its request is answered, whether it was read or not. */
  end(): void;
}

export function streamBody(exchange: Exchange, mostBytes: number): StreamedBody {
  const stream = new BodyStream(exchange, mostBytes);
  return { pieces: stream.pieces(), end: () => stream.end() };
}

class BodyStream {
  readonly #exchange: Exchange;
  readonly #mostBytes: number;
  readonly #body: UnreadBody;
  /** What has come and was not taken: one piece, rarely two, because a pause comes after the first. */
  #pieces: Uint8Array[] = [];
  #size = 0;
  #isWhole = false;
  #isPaused = false;
  #error: Error | undefined;
  #wake: () => void = () => undefined;
  /** How long the client has been waited for in all, and since when it is waited for now. */
  #waitedMs = 0;
  #waitsSinceMs: number | undefined = performance.now();

  constructor(exchange: Exchange, mostBytes: number) {
    this.#exchange = exchange;
    this.#mostBytes = mostBytes;
    this.#body = {
      block: addressBlock(exchange.facts.address),
      isKnownCaller: exchange.isKnownCaller,
      close: () => this.#closeSoon(),
      bytes: 0,
    };
    exchange.readsBody = true;
    exchange.isBodyUnread = true;
    exchange.onGone = () => this.#fail(new ClientGoneError());
    exchange.onDeadline = () => this.#fail(new Refusal("request_timeout"));
    exchange.unread.begin(this.#body);
    this.#extend();
    exchange.res.onData((chunk, isLast) => this.#take(chunk, isLast));
  }

  async *pieces(): AsyncIterable<Uint8Array> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        yield piece;
        continue;
      }
      if (this.#error !== undefined) throw this.#error;
      if (this.#isWhole) return;
      await this.#next();
    }
  }

  end(): void {
    this.#exchange.unread.end(this.#body);
  }

  #next(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    this.#waitsSinceMs ??= performance.now();
    // From here on it is the client that is waited for.
    this.#extend();
    this.#resume();
    return promise;
  }

  #resume(): void {
    if (this.#isPaused && !this.#exchange.isOver) this.#exchange.res.resume();
    this.#isPaused = false;
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#error !== undefined || this.#isWhole) return;
    this.#size += chunk.byteLength;
    if (this.#size > this.#mostBytes) return this.#fail(new Refusal("body_too_large"));
    if (this.#isTooSlow() && !isLast) return this.#fail(new Refusal("request_timeout"));
    // The chunk's memory is the server's and is taken back after this call.
    if (chunk.byteLength > 0) this.#pieces.push(new Uint8Array(chunk.slice(0)));
    if (isLast) {
      this.#isWhole = true;
      this.#exchange.isBodyUnread = false;
      this.end();
      // The last piece may come after a pause, and the connection's next request must be read.
      this.#resume();
    } else if (!this.#isPaused) {
      this.#exchange.res.pause();
      this.#isPaused = true;
    }
    this.#extend();
    this.#wake();
  }

  /** With each piece, because a piece comes before the request's deadline or not at all. */
  #isTooSlow(): boolean {
    const { uploadBytesPerSecond, uploadGraceMs } = LIMITS;
    if (this.#waitsSinceMs !== undefined) this.#waitedMs += performance.now() - this.#waitsSinceMs;
    this.#waitsSinceMs = undefined;
    return this.#waitedMs > uploadGraceMs && this.#size < (this.#waitedMs / 1_000) * uploadBytesPerSecond;
  }

  /** What has come before is not worth storing any more. */
  #fail(error: Error): void {
    this.#error ??= error;
    this.#pieces = [];
    this.#wake();
  }

  #closeSoon(): void {
    this.end();
    this.#fail(new ClientGoneError());
    // Not at once: the server may be in the middle of this connection's data.
    setImmediate(() => {
      if (!this.#exchange.isOver) this.#exchange.res.close();
    });
  }

  /** A body may take hours; a single piece, or what is done with it, may not. */
  #extend(): void {
    this.#exchange.deadlineMs = performance.now() + LIMITS.requestTimeoutMs;
  }
}
