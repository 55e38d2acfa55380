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
import type { HttpResponse } from "uWebSockets.js";
import { CONNECTION_LIMITS } from "./limits.ts";

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
    const timer = setTimeout(resolve, timeoutMs);
    this.#onEmpty = resolve;
    await promise;
    clearTimeout(timer);
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
