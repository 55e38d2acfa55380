/**
 * Reads a request body in pieces, as fast as the handler asks for them. It pauses the connection between two pieces, so that a
 * client waits when it sends faster than the file is stored. Usually one piece of each upload is in memory. An upload that
 * arrives too fast even so is refused (`LIMITS.uploadHeldBytes`). Call `streamBody` before the first await of the request.
 */
import { addressBlock } from "../../services/bus/address-block.ts";
import { LIMITS } from "../limits.ts";
import type { Exchange } from "./exchange.ts";
import { ApiError } from "./handler-context.ts";
import { ClientGoneError } from "./read-body.ts";
import type { UnreadBody } from "./request-bounds.ts";

export interface StreamedBody {
  /** The pieces in order. Throws `body_too_large`, `busy`, `request_timeout` or `ClientGoneError`. Iterate it once. */
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Call it when the request is answered, even if the body was not read. */
  end(): void;
}

/** Bytes of all uploads of this process that have arrived and that no handler has read. */
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
  /** Pieces that have arrived and that the handler has not read. Usually one, because the connection pauses after it. */
  #pieces: Uint8Array[] = [];
  #held = 0;
  #size = 0;
  #isWhole = false;
  #isPaused = false;
  #error: Error | undefined;
  #wake: () => void = () => undefined;
  /** How long the reader has waited for the client in total, and since when it waits now. */
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
    exchange.onDeadline = () => this.#fail(new ApiError(exchange.isStopping ? "unavailable" : "request_timeout"));
    exchange.unread.begin(this.#body);
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

  /** Drops the rest of the body. */
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
    // A body may take hours, but the wait for a single piece may not.
    this.#exchange.deadlineMs = performance.now() + LIMITS.requestTimeoutMs;
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
    if (this.#size > this.#mostBytes) return this.#fail(new ApiError("body_too_large"));
    if (this.#isTooSlow() && !isLast) return this.#fail(new ApiError("request_timeout"));
    // A copy, because the server reuses the memory of the chunk after this call.
    if (chunk.byteLength > 0) this.#pieces.push(new Uint8Array(chunk.slice(0)));
    this.#hold(chunk.byteLength);
    const { each, inAll } = LIMITS.uploadHeldBytes;
    if (this.#held > each || heldInAll > inAll) return this.#fail(new ApiError("busy", TOO_FAST));
    if (isLast) {
      this.#isWhole = true;
      this.#exchange.isBodyUnread = false;
      this.#end();
      // The connection may be paused, and the server must read its next request.
      this.#resume();
    } else if (!this.#isPaused) {
      this.#exchange.res.pause();
      this.#isPaused = true;
    }
    // The time in which the handler stores a piece must not count against the client. Its calls have their own limits.
    this.#exchange.deadlineMs = Number.POSITIVE_INFINITY;
    this.#wake();
  }

  /** Whether the client sends too slowly. Checked with each piece: the deadline covers the time without a piece. */
  #isTooSlow(): boolean {
    const { uploadBytesPerSecond, uploadGraceMs } = LIMITS;
    if (this.#waitsSinceMs !== undefined) this.#waitedMs += performance.now() - this.#waitsSinceMs;
    this.#waitsSinceMs = undefined;
    return this.#waitedMs > uploadGraceMs && this.#size < (this.#waitedMs / 1_000) * uploadBytesPerSecond;
  }

  /** Ends the body with an error and drops the pieces that have arrived. */
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
    // In the next turn, because the server may still be processing data of this connection.
    setImmediate(() => {
      if (!this.#exchange.isOver) this.#exchange.res.close();
    });
  }
}
