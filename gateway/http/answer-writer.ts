/**
 * Sends an answer in one of three ways:
 *
 *   with a body, the connection stays     `UnsentAnswers` keeps what the client does not read yet, bounded
 *   the connection closes                 written whole, without the server's `end`, and closed in the next turn
 *   without a body, the connection stays  for known callers only: the server does not report its unsent part
 *
 * The second way does not use the server's flag to close a connection. With the flag, the server first handles the other
 * requests of the same packet, and never closes if the client does not read. In this way the response counts as pending until
 * the connection is closed, so the server closes the connection at once when another request follows.
 *
 * While the client may still be sending a body, the connection closes a moment later. Otherwise the bytes that arrive would
 * reset the connection, and the client or a proxy would report the reset in place of the answer (RFC 9112 §9.6).
 *
 * The server handles all requests that it has read from a connection in one turn. These may be thousands, and all other
 * clients wait. While a request has no answer, the server closes the connection at the next request. So the writer answers in
 * the turn after the request: a client that does not wait for answers gets one request handled, and then the connection
 * closes. Only polls of known devices are answered at once: their throttle bounds them.
 */
import type { HttpResponse } from "uWebSockets.js";
import { within } from "../../services/runtime/repeat.ts";
import { CONNECTION_LIMITS } from "../limits.ts";
import { type Answer, statusLine } from "./response.ts";

export interface WriteOptions {
  readonly isHead: boolean;
  /** Also closes the connection. */
  readonly close: boolean;
  /** The client may still be sending a body that the server does not read. */
  readonly bodyFollows?: boolean;
  /** A known caller's connection stays open after an answer without a body. */
  readonly isKnownCaller?: boolean;
  /** Called when the answer is written or, if the connection closes with it, when it is closed. */
  readonly onWritten?: ((isClosed: boolean) => void) | undefined;
}

export class AnswerWriter {
  readonly #unsent: UnsentAnswers;
  #bodiless = 0;
  /** Connections that wait to be closed, because a body may follow. */
  #ending = 0;
  /** Answers that are not known yet. */
  readonly #later = new Set<Promise<unknown>>();

  constructor(unsent: UnsentAnswers) {
    this.#unsent = unsent;
  }

  /** Writes an answer in the next turn. Call it within the turn of the request. */
  writeSoon(res: HttpResponse, answer: Answer, options: WriteOptions): void {
    let isGone = false;
    res.onAborted(() => {
      isGone = true;
    });
    setImmediate(() => {
      if (!isGone) this.write(res, answer, options);
    });
  }

  /** Writes an answer that is not known yet. Call it within the turn of the request; `find` must not reject. */
  async writeLater(
    res: HttpResponse,
    find: () => Promise<{ readonly answer: Answer; readonly options: WriteOptions }>,
  ): Promise<void> {
    let isGone = false;
    res.onAborted(() => {
      isGone = true;
    });
    const finding = find();
    this.#later.add(finding);
    const { answer, options } = await finding;
    this.#later.delete(finding);
    if (!isGone) this.write(res, answer, options);
  }

  /** Resolves when the answers that are not known yet are written, or after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    await within(Promise.all(this.#later), timeoutMs);
  }

  write(res: HttpResponse, answer: Answer, options: WriteOptions): void {
    const { isHead, close, isKnownCaller = false, onWritten } = options;
    const { body } = answer;
    if (body === undefined || body === "" || isHead) {
      if (!close && isKnownCaller && !isHead && this.#staysOpen()) endWithoutBody(res, answer);
      else return this.#closeBehind(res, answer, options);
    } else if (close && typeof body === "string" && Buffer.byteLength(body) <= CONNECTION_LIMITS.closingAnswerBytes) {
      return this.#closeBehind(res, answer, options);
    } else {
      res.cork(() => {
        writeHead(res, answer);
        // A large answer must arrive first. Then its client closes the connection, or the server does after ten seconds.
        if (close) res.writeHeader("Connection", "close");
        this.#unsent.send(res, body);
      });
    }
    onWritten?.(false);
  }

  /** Ends a response whose head is written. */
  send(res: HttpResponse, body: string): void {
    this.#unsent.send(res, body);
  }

  #closeBehind(res: HttpResponse, answer: Answer, options: WriteOptions): void {
    const { bodyFollowsMs, bodiesFollowing } = CONNECTION_LIMITS;
    let isOver = false;
    let timer: NodeJS.Timeout | undefined;
    res.onAborted(() => {
      isOver = true;
      if (timer !== undefined) this.#ending -= 1;
      clearTimeout(timer);
      options.onWritten?.(true);
    });
    writeWhole(res, answer, options.isHead);
    if (options.bodyFollows === true && this.#ending < bodiesFollowing) {
      this.#ending += 1;
      timer = setTimeout(() => res.close(), bodyFollowsMs);
    } else {
      setImmediate(() => {
        if (!isOver) res.close();
      });
    }
  }

  #staysOpen(): boolean {
    this.#bodiless = (this.#bodiless + 1) % CONNECTION_LIMITS.bodilessInARow;
    return this.#bodiless !== 0;
  }
}

/** Call it within `res.cork`. */
export function writeHead(res: HttpResponse, answer: Pick<Answer, "status" | "headers" | "cookies">): void {
  res.writeStatus(statusLine(answer.status));
  for (const name in answer.headers) res.writeHeader(name, answer.headers[name] as string);
  for (const cookie of answer.cookies ?? []) res.writeHeader("Set-Cookie", cookie);
}

function endWithoutBody(res: HttpResponse, answer: Answer): void {
  res.cork(() => {
    writeHead(res, answer);
    res.endWithoutBody();
  });
}

/**
 * Writes the end of the head and the body as part of the last header's value. The server writes a value unchanged and adds a
 * line break. Without a body, the break is the empty line that ends the head; after JSON, it is white space.
 */
function writeWhole(res: HttpResponse, { status, headers, cookies, body }: Answer, isHead: boolean): void {
  // `end`, which would write the date, is not called.
  const date = new Date().toUTCString();
  res.cork(() => {
    writeHead(res, { status, headers, cookies });
    res.writeHeader("Connection", "close");
    if (status === 204 || status === 304) res.writeHeader("Date", `${date}\r\n`);
    else {
      res.writeHeader("Date", date);
      res.writeHeader("Content-Length", lengthAndBody(body ?? "", isHead));
    }
  });
}

function lengthAndBody(body: string | Uint8Array, isHead: boolean): string {
  const length = Buffer.byteLength(body);
  if (isHead || typeof body !== "string" || length === 0) return `${length}\r\n`;
  return `${length + "\r\n".length}\r\n\r\n${body}`;
}

type Closing = "stalled" | "connection_full" | "all_full";

/** One answer that the client has not read completely. */
interface Waiting {
  readonly res: HttpResponse;
  readonly bytes: Uint8Array;
  /** The bytes of a file: they are in memory once for all answers, so `bytes` does not count them. */
  readonly isShared: boolean;
  readonly sinceMs: number;
  takenAtMs: number;
  taken: number;
}

interface UnsentLimits {
  readonly unsentBytesPerConnection: number;
  readonly unsentBytes: number;
  readonly unsentAnswers: number;
  readonly stalledMs: number;
  readonly unsentMs: number;
}

/**
 * Answers that clients have not read completely. The server's queue has no bound: it appends whatever a client does not read,
 * and the server handles the client's next requests. So a body is sent with `tryEnd`, which writes what the socket accepts and
 * reports the rest, and this class keeps the rest:
 *
 *   send ──► accepted ────────────────────────────────────────────► done
 *     └────► waits, bounded per connection and in total ─ writable ─► done
 *              ├── the client reads nothing for 5 s, or too little in 30 s ──► the connection is closed
 *              └── another request arrives after it ──► the server closes the connection
 *
 * So the server handles no further request of a connection with an unsent answer, and its queue holds only heads.
 */
export class UnsentAnswers {
  readonly #limits: UnsentLimits;
  readonly #waiting = new Set<Waiting>();
  readonly #closed: Record<Closing, number> = { stalled: 0, connection_full: 0, all_full: 0 };
  #bytes = 0;
  #check: NodeJS.Timeout | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(limits: UnsentLimits = CONNECTION_LIMITS) {
    this.#limits = limits;
  }

  /** How many answers wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Bytes that are in memory only because answers wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many connections were closed because their answers waited, by reason. */
  get closed(): Readonly<Record<Closing, number>> {
    return this.#closed;
  }

  /** Ends a response whose head is written. What the socket does not accept waits. */
  send(res: HttpResponse, body: string | Uint8Array): void {
    const [, isDone] = res.tryEnd(body, 0);
    if (!isDone) this.wait(res, body);
  }

  /** Keeps the rest after a caller's `tryEnd` that did not write everything. */
  wait(res: HttpResponse, body: string | Uint8Array): void {
    const isShared = typeof body !== "string";
    const bytes = isShared ? body : Buffer.from(body);
    const nowMs = performance.now();
    const waiting = { res, bytes, isShared, sinceMs: nowMs, takenAtMs: nowMs, taken: res.getWriteOffset() };
    // First of all: the server aborts the process when a response has neither ended nor an `onAborted` handler.
    res.onAborted(() => this.#forget(waiting));
    this.#waiting.add(waiting);
    if (!isShared) this.#bytes += bytes.length - waiting.taken;
    const { unsentBytesPerConnection, unsentBytes, unsentAnswers } = this.#limits;
    if (!isShared && bytes.length - waiting.taken > unsentBytesPerConnection) {
      return this.#closeSoon(waiting, "connection_full");
    }
    if (this.#bytes > unsentBytes || this.#waiting.size > unsentAnswers) return this.#closeSoon(waiting, "all_full");
    res.onWritable((offset) => this.#continue(waiting, offset));
    this.#check ??= setInterval(() => this.#checkAll(performance.now()), CONNECTION_LIMITS.unsentCheckMs);
  }

  /** Resolves when no answer waits, or after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.#waiting.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onEmpty = resolve;
    await within(promise, timeoutMs);
    clearInterval(this.#check);
  }

  #continue(waiting: Waiting, offset: number): boolean {
    const [isTaken, isDone] = waiting.res.tryEnd(waiting.bytes.subarray(offset), waiting.bytes.length);
    if (isDone) this.#forget(waiting);
    else this.#note(waiting, waiting.res.getWriteOffset());
    return isTaken;
  }

  #note(waiting: Waiting, taken: number): void {
    if (taken === waiting.taken) return;
    if (!waiting.isShared) this.#bytes -= taken - waiting.taken;
    waiting.taken = taken;
    waiting.takenAtMs = performance.now();
  }

  #forget(waiting: Waiting): void {
    if (!this.#waiting.delete(waiting)) return;
    if (!waiting.isShared) this.#bytes -= waiting.bytes.length - waiting.taken;
    if (this.#waiting.size > 0) return;
    clearInterval(this.#check);
    this.#check = undefined;
    this.#onEmpty?.();
  }

  #checkAll(nowMs: number): void {
    const { stalledMs, unsentMs } = this.#limits;
    for (const waiting of this.#waiting) {
      const isStalled = nowMs - waiting.takenAtMs >= stalledMs || nowMs - waiting.sinceMs >= unsentMs;
      if (isStalled) this.#close(waiting, "stalled");
    }
  }

  /** Closes in the next turn: the server may still be processing a request of this connection. */
  #closeSoon(waiting: Waiting, why: Closing): void {
    setImmediate(() => {
      if (this.#waiting.has(waiting)) this.#close(waiting, why);
    });
  }

  #close(waiting: Waiting, why: Closing): void {
    this.#closed[why] += 1;
    waiting.res.close();
  }
}
