/**
 * Dials PostgreSQL for one pool, and no more often than it may. The driver dials again at once when a server, or a pooler
 * in front of it, accepts a connection and closes it: thousands of times a second. Here every dial passes a gate:
 *
 *   open ── a dial ──► pausing, longer with each dial ── the pause is over ──► one dial passes, pausing again
 *     ▲                       │                                   │
 *     └── a statement is answered, all that wait pass ◄───────────┴── the dial fails: all that wait fail with it
 */
import { Socket } from "node:net";
import { backOffMs } from "../runtime/repeat.ts";
import { DATABASE_LIMITS } from "./limits.ts";

/** What the driver hands to its custom socket: the addresses of the URL, or the path of a Unix socket. */
export interface DialTarget {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path?: string | false;
}

/** A connection could not be made. Nothing was sent on it. */
class DialError extends Error {
  readonly code: string;
  constructor(address: string, cause: Error | undefined) {
    const reason = cause !== undefined && "code" in cause ? String(cause.code) : "CONNECTION_CLOSED";
    super(`The connection to PostgreSQL at ${address} could not be made (${reason}).`, { cause });
    this.name = "DialError";
    this.code = reason;
  }
}

interface Waiting {
  readonly pass: () => void;
  readonly fail: (error: Error) => void;
}

/** When a pool may dial. It outlives a pool that is replaced, so that a replacement is no reason to dial more often. */
export class DialGate {
  readonly #waiting = new Set<Waiting>();
  /** Dials since a statement was answered. */
  #unanswered = 0;
  #answers = 0;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** Resolves when a dial may begin. Rejects with the error of one that failed meanwhile, or when `signal` is aborted. */
  async pass(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#waiting.size === 0 && performance.now() >= this.#nextAtMs) return this.#begin();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { pass: resolve, fail: reject };
    const abandon = (): void => reject(signal.reason as Error);
    this.#waiting.add(waiting);
    signal.addEventListener("abort", abandon, { once: true });
    this.#schedule();
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", abandon);
      this.#waiting.delete(waiting);
      if (this.#waiting.size === 0) this.#unschedule();
    }
  }

  /** A statement was answered: the server is there, and all that wait may dial. */
  answered(): void {
    this.#answers += 1;
    this.#unanswered = 0;
    this.#nextAtMs = Number.NEGATIVE_INFINITY;
    for (const waiting of this.#waiting) this.#let(waiting);
  }

  /** How many statements were answered so far: a dial after which this has not grown has failed when it ends. */
  get answers(): number {
    return this.#answers;
  }

  /** A dial has failed: what waits for the next one would only learn the same later. */
  failed(error: Error): void {
    for (const waiting of this.#waiting) waiting.fail(error);
    this.#waiting.clear();
    this.#unschedule();
  }

  #begin(): void {
    this.#unanswered += 1;
    this.#nextAtMs = performance.now() + backOffMs(this.#unanswered, DATABASE_LIMITS.redial);
  }

  #let(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    this.#begin();
    waiting.pass();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#waiting.size === 0) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        const [first] = this.#waiting;
        if (first !== undefined) this.#let(first);
        this.#schedule();
      },
      Math.max(0, this.#nextAtMs - performance.now()),
    );
  }

  #unschedule(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** The sockets of one pool. */
export class Dialer {
  readonly #gate: DialGate;
  readonly #ended = new AbortController();
  #dials = 0;

  constructor(gate: DialGate) {
    this.#gate = gate;
  }

  /**
   * A socket on its way to the server, for the driver's option `socket`; several addresses take turns. Never rejects,
   * because the driver would then forget the connection for good: a dial that may not be made is a socket that fails.
   */
  async dial(target: DialTarget): Promise<Socket> {
    try {
      await this.#gate.pass(this.#ended.signal);
    } catch (error) {
      return failedSocket(error as Error);
    }
    const place = this.#dials % target.host.length;
    this.#dials += 1;
    const host = target.host[place] ?? "";
    const port = target.port[place] ?? 0;
    const path = target.path === false ? undefined : target.path;
    const socket = new DialledSocket(this.#gate, path ?? `${host}:${port}`);
    // The driver shows them in its errors, and TLS checks the certificate against the host.
    Object.assign(socket, { host, port });
    // A COPY ends in a small message of its own, which would wait 40 ms for the server's acknowledgement of its rows.
    socket.setNoDelay(true);
    if (path !== undefined) socket.connect(path);
    else socket.connect(port, host);
    return socket;
  }

  /** No dial of this pool begins any more. */
  end(): void {
    this.#ended.abort(new Error("The pool of this connection has ended."));
  }
}

/** Notes whether it ended before the server had answered anything. The driver removes listeners, so this needs none. */
class DialledSocket extends Socket {
  readonly #gate: DialGate;
  readonly #address: string;
  readonly #answersBefore: number;

  constructor(gate: DialGate, address: string) {
    super();
    this.#gate = gate;
    this.#address = address;
    this.#answersBefore = gate.answers;
  }

  /** Called at every end, also by the stream itself. */
  override destroy(error?: Error): this {
    if (this.#gate.answers === this.#answersBefore) this.#gate.failed(new DialError(this.#address, error));
    return super.destroy(error);
  }
}

/** A turn later, when the driver listens. */
function failedSocket(error: Error): Socket {
  const socket = new Socket();
  setImmediate(() => socket.destroy(error));
  return socket;
}
