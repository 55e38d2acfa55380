/**
 * Reads a request body piece by piece, as its reader asks: between two pieces the connection is paused, so that a client
 * that sends faster than the file is stored waits. One piece of each upload is in memory as a rule, at most what the server
 * reads of a connection at once; one that comes at the speed of memory is refused (`LIMITS.uploadHeldBytes`). Must be called
 * before the first await of its request.
 */
import { addressBlock } from "../../services/bus/address-block.ts";
import { LIMITS } from "../limits.ts";
import type { Exchange } from "./exchange.ts";
import { Refusal } from "./handler-context.ts";
import { ClientGoneError } from "./read-body.ts";
import type { UnreadBody } from "./request-bounds.ts";

export interface StreamedBody {
  /** In order; ends by `body_too_large`, `busy`, `request_timeout` or `ClientGoneError` where the body does. Read it once. */
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Its request is answered, whether it was read or not. */
  end(): void;
}

/** Bytes of all uploads of this process that have come and were not taken. */
let heldInAll = 0;

export function streamBody(exchange: Exchange, mostBytes: number): StreamedBody {
  const stream = new BodyStream(exchange, mostBytes);
  return { pieces: stream.pieces(), end: () => stream.close() };
}

const TOO_FAST = {
  detail: "The file comes faster than it can be stored; send it again with at most 50 MB a second.",
  retryAfterMs: 1_000,
};

class BodyStream {
  readonly #exchange: Exchange;
  readonly #mostBytes: number;
  readonly #body: UnreadBody;
  /** What has come and was not taken: one piece as a rule, because a pause comes after the first. */
  #pieces: Uint8Array[] = [];
  #held = 0;
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
    exchange.onDeadline = () => this.#fail(new Refusal(exchange.isStopping ? "unavailable" : "request_timeout"));
    exchange.unread.begin(this.#body);
    this.#extend();
    exchange.res.onData((chunk, isLast) => this.#take(chunk, isLast));
  }

  async *pieces(): AsyncIterable<Uint8Array> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        this.#hold(-piece.length);
        yield piece;
        continue;
      }
      if (this.#error !== undefined) throw this.#error;
      if (this.#isWhole) return;
      await this.#next();
    }
  }

  /** Nobody reads what is left. */
  close(): void {
    this.#end();
    this.#drop();
  }

  #end(): void {
    this.#exchange.unread.end(this.#body);
  }

  #drop(): void {
    this.#pieces = [];
    this.#hold(-this.#held);
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
    this.#hold(chunk.byteLength);
    const { each, inAll } = LIMITS.uploadHeldBytes;
    if (this.#held > each || heldInAll > inAll) return this.#fail(new Refusal("busy", TOO_FAST));
    if (isLast) {
      this.#isWhole = true;
      this.#exchange.isBodyUnread = false;
      this.#end();
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
    this.#drop();
    this.#wake();
  }

  #hold(bytes: number): void {
    this.#held += bytes;
    heldInAll += bytes;
  }

  #closeSoon(): void {
    this.#end();
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
