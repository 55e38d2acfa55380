/**
 * Dials PostgreSQL for one pool, with pauses. When a server, or a pooler in front of it, accepts a connection and
 * closes it, the driver dials again at once: thousands of times a second. So every dial passes a gate:
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

/** Decides when a pool may dial. A replacement of the pool keeps its gate, so that it does not dial more often. */
export class DialGate {
  readonly #waiting = new Set<Waiting>();
  /** Dials since a statement was answered. */
  #unanswered = 0;
  #answers = 0;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Resolves when a dial may begin. Rejects with the error of a dial that failed meanwhile, or when `signal` is
   * aborted.
   */
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

  /** Called when the server has answered a statement: all that wait may dial. */
  answered(): void {
    this.#answers += 1;
    this.#unanswered = 0;
    this.#nextAtMs = Number.NEGATIVE_INFINITY;
    for (const waiting of this.#waiting) this.#let(waiting);
  }

  /**
   * How many statements the server has answered so far. A connection during which this does not grow counts as a failed
   * dial when it ends.
   */
  get answers(): number {
    return this.#answers;
  }

  /** Called when a dial has failed: all that wait fail with the same error. */
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
   * because the driver would then lose the connection for ever. A dial that must not begin returns a socket that fails.
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
    // The driver shows host and port in its errors, and TLS checks the certificate against the host.
    Object.assign(socket, { host, port });
    // A COPY ends with a small message. With Nagle's algorithm it would wait 40 ms until the server acknowledges the
    // rows.
    socket.setNoDelay(true);
    if (path !== undefined) socket.connect(path);
    else socket.connect(port, host);
    return socket;
  }

  /** From now on this pool begins no dial. */
  end(): void {
    this.#ended.abort(new Error("The pool of this connection has ended."));
  }
}

/**
 * A socket that reports when it ends before the server has answered anything. It overrides `destroy`, because the
 * driver removes listeners.
 */
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

  /** Called whenever the socket ends, also by the stream itself. */
  override destroy(error?: Error): this {
    if (this.#gate.answers === this.#answersBefore) this.#gate.failed(new DialError(this.#address, error));
    return super.destroy(error);
  }
}

/** It fails one turn later, when the driver has added its listeners. */
function failedSocket(error: Error): Socket {
  const socket = new Socket();
  setImmediate(() => socket.destroy(error));
  return socket;
}
