/**
 * How an answer goes out, in one of three ways:
 *
 *   with a body, the connection stays     what the client does not take waits, bounded (`UnsentAnswers`)
 *   and then the connection ends          written whole, without the server's `end`, and closed in the next turn
 *   without a body, the connection stays  for known callers only: the server does not report what waits of it
 *
 * The second way does not use the server's own flag to close a connection: with it the server first answers what else has
 * arrived in the same packet, and never closes if the client does not read. Here the response counts as pending until it
 * is closed, so a request behind it closes the connection at once.
 *
 * Where the client may still be sending the body, the connection ends a moment later instead: what arrives at a connection
 * that has ended resets it, and the client, or a proxy in between, reports that in place of the answer (RFC 9112 §9.6).
 *
 * All but the polls of known devices, which their throttle bounds, are answered in the turn behind their request: the server
 * handles all requests that it has read of a connection in one turn, thousands of them, and keeps everyone else waiting. As
 * long as one is not answered, the next one behind it closes the connection. So of requests that a client sends without
 * waiting for answers one is handled in a turn, and the connection ends.
 */
import type { HttpResponse } from "uWebSockets.js";
import { within } from "../../services/runtime/repeat.ts";
import { CONNECTION_LIMITS } from "../limits.ts";
import { type Answer, statusLine } from "./response.ts";

export interface WriteOptions {
  readonly isHead: boolean;
  /** Ends the connection as well. */
  readonly close: boolean;
  /** The client may still be sending a body that is not read. */
  readonly bodyFollows?: boolean;
  /** A known caller's connection stays open behind an answer without a body. */
  readonly isKnownCaller?: boolean;
  /** Called when the answer is written or, where that ends the connection, when it is closed. */
  readonly onWritten?: ((isClosed: boolean) => void) | undefined;
}

export class AnswerWriter {
  readonly #unsent: UnsentAnswers;
  #bodiless = 0;
  /** Connections that end in a moment, because a body may follow. */
  #ending = 0;

  constructor(unsent: UnsentAnswers) {
    this.#unsent = unsent;
  }

  /** For an answer within the turn of its request: writes it in the next turn. */
  writeSoon(res: HttpResponse, answer: Answer, options: WriteOptions): void {
    let isGone = false;
    res.onAborted(() => {
      isGone = true;
    });
    setImmediate(() => {
      if (!isGone) this.write(res, answer, options);
    });
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
        // A large answer must arrive first. Its client closes then, or the server does after ten seconds.
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

/** Within `res.cork`. */
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
 * Writes the end of the head, and the body, as part of the last header's value: the server writes a value as it is and
 * ends it with a line break, which is the empty line behind a head and white space behind JSON.
 */
function writeWhole(res: HttpResponse, { status, headers, cookies, body }: Answer, isHead: boolean): void {
  // The server's own `end` would write it.
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

/** One answer that waits. */
interface Waiting {
  readonly res: HttpResponse;
  readonly bytes: Uint8Array;
  /** A file's bytes are in memory anyway, however many wait for them. */
  readonly isShared: boolean;
  readonly sinceMs: number;
  takenAtMs: number;
  taken: number;
}

export interface UnsentLimits {
  readonly unsentBytesPerConnection: number;
  readonly unsentBytes: number;
  readonly unsentAnswers: number;
  readonly stalledMs: number;
  readonly unsentMs: number;
}

/**
 * Answers whose clients have not taken them yet. The server's own queue has no bound: it appends whatever a client does
 * not read, and goes on to answer what else the client has sent. So a body goes out by `tryEnd`, which takes what the
 * socket takes and reports the rest, and the rest waits here:
 *
 *   send ──► taken ──────────────────────────────────────────────► done
 *     └────► waits, bounded per connection and in all ── writable ──► done
 *              ├── the client takes nothing for 5 s, or too little in 30 s ──► the connection is closed
 *              └── another request arrives behind it ──► the server closes the connection
 *
 * So nothing more is read from a connection on which an answer waits, and the server's queue of it holds heads only.
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

  /** Bytes that are in memory for them alone. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Connections that were closed so far because their answers waited. */
  get closed(): Readonly<Record<Closing, number>> {
    return this.#closed;
  }

  /** Ends a response whose head is written. Where the client does not take all of it, the rest waits. */
  send(res: HttpResponse, body: string | Uint8Array): void {
    const [, isDone] = res.tryEnd(body, 0);
    if (!isDone) this.wait(res, body);
  }

  /** The same after a `tryEnd` of the caller's that was not done. */
  wait(res: HttpResponse, body: string | Uint8Array): void {
    const isShared = typeof body !== "string";
    const bytes = isShared ? body : Buffer.from(body);
    const nowMs = performance.now();
    const waiting = { res, bytes, isShared, sinceMs: nowMs, takenAtMs: nowMs, taken: res.getWriteOffset() };
    // Before anything else: the server ends the process when a response is neither ended nor has this.
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

  /** Resolves when no answer waits any more, at the latest after `timeoutMs`. */
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

  /** Not at once: the server may be in the middle of the connection's request. */
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
