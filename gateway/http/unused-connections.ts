/**
 * Connections on which no request has arrived yet, oldest first: what a flood of idle connections consists of, and what is
 * closed to make room. The server closes an idle connection by itself, but only after ten seconds. Of one address some are
 * kept here and no more, because `recognise` has to check each: when one of them is closed, the next that opens is kept.
 *
 * The server gives each connection to `filter` when it opens, as an object that refers to its memory. The object is not
 * marked when a later request ends or its connection closes, and using it then is a use of freed memory. So it is kept
 * only while one of two calls is certain to come:
 *
 *   opened ──► unused ── closed before a request ──► `onAborted`, which also marks the object
 *                └────── first request ────────────► `onData`, which the server calls behind each request, body or not
 *
 * `onData` switches off the timer by which the server ends idle connections, because the response is usually yet to come.
 * Where it has been ended already, the timer is switched on again.
 *
 * A request whose body is read replaces both calls. Its exchange calls `recognise` when it is over, while the memory is
 * still there: its connection is the one that has sent an answer's body, or that has no remote address any more. Behind an
 * upgrade neither call comes, so all of its address are forgotten before it. An answer that may close its connection while
 * it is written waits for the turn behind `onData` (`exchange.ts`).
 */
import type { HttpResponse } from "uWebSockets.js";
import { CONNECTION_LIMITS } from "./limits.ts";

interface UnusedConnection {
  readonly res: HttpResponse;
  /** The address as it is counted. */
  readonly block: string;
}

export class UnusedConnections {
  readonly #isAnswered: () => boolean;
  /** In the order in which they were opened, as a Set keeps it. */
  readonly #all = new Set<UnusedConnection>();
  readonly #byBlock = new Map<string, Set<UnusedConnection>>();

  /** `isAnswered`: whether the request that is being handled has been answered without a body. */
  constructor(isAnswered: () => boolean) {
    this.#isAnswered = isAnswered;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Takes a connection that has just been opened, unless its address has enough here. `onClosed` is called if it closes before its first request. */
  add(res: HttpResponse, block: string, onClosed: () => void): void {
    const ofBlock = this.#byBlock.get(block) ?? new Set();
    if (ofBlock.size >= CONNECTION_LIMITS.unusedPerAddress) return void res.onAborted(onClosed);
    const connection = { res, block };
    this.#all.add(connection);
    ofBlock.add(connection);
    this.#byBlock.set(block, ofBlock);
    res.onAborted(() => {
      this.#forget(connection);
      onClosed();
    });
    res.onData(() => {
      this.#forget(connection);
      if (res.getWriteOffset() > 0 || this.#isAnswered()) restartIdleTimer(res);
    });
  }

  /** How many each address has. */
  counts(): ReadonlyMap<string, number> {
    return new Map([...this.#byBlock].map(([block, { size }]) => [block, size]));
  }

  /** Whether this address has such connections. */
  has(block: string): boolean {
    return this.#byBlock.has(block);
  }

  /** Closes the oldest, of one address or of all; false when there is none. */
  closeOldest(block?: string): boolean {
    const [oldest] = block === undefined ? this.#all : (this.#byBlock.get(block) ?? []);
    if (oldest === undefined) return false;
    this.#forget(oldest);
    oldest.res.close();
    return true;
  }

  /** A request of this address whose body was read is over: its connection is not an unused one. `isClosed`: it was closed. */
  recognise(block: string, isClosed: boolean): void {
    for (const connection of this.#byBlock.get(block) ?? []) {
      const { res } = connection;
      // A remote address costs a system call.
      if (res.getWriteOffset() > 0 || (isClosed && res.getRemoteAddress().byteLength === 0)) this.#forget(connection);
    }
  }

  /** Keeps none of this address: the server closes them in ten seconds, unless they send a request. */
  forget(block: string): void {
    for (const connection of this.#byBlock.get(block) ?? []) this.#forget(connection);
  }

  #forget(connection: UnusedConnection): void {
    if (!this.#all.delete(connection)) return;
    const ofBlock = this.#byBlock.get(connection.block);
    ofBlock?.delete(connection);
    if (ofBlock?.size === 0) this.#byBlock.delete(connection.block);
  }
}

/** The server has no call for it alone; this one goes on reading as before. */
function restartIdleTimer(res: HttpResponse): void {
  res.pause();
  res.resume();
}
