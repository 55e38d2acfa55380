/** Reads a request body, bounded in size and time. Must be called before the first await of its request. */
import { addressBlock } from "../../services/bus/address-block.ts";
import { LIMITS } from "../limits.ts";
import type { Exchange } from "./exchange.ts";
import { Refusal } from "./handler-context.ts";
import type { Route } from "./route.ts";

/** The client went away while its body was awaited: nobody is left to answer. */
export class ClientGoneError extends Error {
  constructor() {
    super("The client went away.");
    this.name = "ClientGoneError";
  }
}

/** The most bytes that a route's body may have. */
export const mostBytesOf = ({ bodyBytes = LIMITS.bodyBytes }: Pick<Route, "bodyBytes">): number => bodyBytes;

/** Rejects with `body_too_large`, `request_timeout` or `ClientGoneError`. */
export function readBody(exchange: Exchange, mostBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  let isDone = false;
  const settle = (act: () => void): void => {
    if (isDone) return;
    isDone = true;
    exchange.onGone = () => undefined;
    exchange.unread.end(body);
    exchange.deadlineMs = exchange.startedAtMs + LIMITS.requestTimeoutMs;
    act();
  };
  const body: UnreadBody = {
    block: addressBlock(exchange.facts.address),
    isKnownCaller: exchange.isKnownCaller,
    close: () => settle(() => closeSoon(exchange, reject)),
    bytes: 0,
  };
  exchange.readsBody = true;
  exchange.isBodyUnread = true;
  exchange.deadlineMs = exchange.startedAtMs + LIMITS.bodyTimeoutMs;
  exchange.onDeadline = () => settle(() => reject(new Refusal("request_timeout")));
  exchange.onGone = () => settle(() => reject(new ClientGoneError()));
  exchange.res.onData((chunk, isLast) => {
    if (isDone) return;
    size += chunk.byteLength;
    if (size > mostBytes) {
      settle(() => reject(new Refusal("body_too_large")));
      return;
    }
    // The chunk's memory is the server's and is taken back after this call.
    chunks.push(Buffer.from(new Uint8Array(chunk)));
    if (!isLast) return exchange.unread.add(body, chunk.byteLength);
    exchange.isBodyUnread = false;
    settle(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size)));
  });
  exchange.unread.begin(body);
  return promise;
}

/** Not at once: the server may be in the middle of this connection's data. */
function closeSoon(exchange: Exchange, reject: (error: Error) => void): void {
  reject(new ClientGoneError());
  setImmediate(() => {
    if (!exchange.isOver) exchange.res.close();
  });
}

/** Whether the headers announce more than is accepted, so that it need not even be sent. */
export function announcesTooMuch(contentLength: string | undefined, mostBytes: number): boolean {
  return contentLength !== undefined && Number(contentLength) > mostBytes;
}

export interface UnreadBody {
  /** The client's address as throttles count it. */
  readonly block: string;
  readonly isKnownCaller: boolean;
  /** Closes its connection; soon, and calls `end` at once. */
  readonly close: () => void;
  /** How many have arrived; `UnreadBodies` counts them. */
  bytes: number;
}

export interface UnreadBodyBounds {
  readonly inAll: number;
  readonly perAddress: number;
  readonly bytes: number;
}

/** The bounds of bodies by those of connections. */
export function unreadBodyBounds(connections: Pick<UnreadBodyBounds, "inAll" | "perAddress">): UnreadBodyBounds {
  const { unreadBodies, unreadBodiesShare, unreadBodyBytes } = LIMITS;
  return {
    inAll: Math.max(1, Math.min(unreadBodies, Math.floor(connections.inAll * unreadBodiesShare))),
    perAddress: connections.perAddress,
    bytes: unreadBodyBytes,
  };
}

/** Bodies in the order in which they were announced, as a Set keeps it. */
class OldestFirst {
  readonly #unknown = new Set<UnreadBody>();
  readonly #known = new Set<UnreadBody>();

  get size(): number {
    return this.#unknown.size + this.#known.size;
  }

  get oldest(): UnreadBody | undefined {
    const [oldest] = this.#unknown.size > 0 ? this.#unknown : this.#known;
    return oldest;
  }

  add(body: UnreadBody): void {
    (body.isKnownCaller ? this.#known : this.#unknown).add(body);
  }

  delete(body: UnreadBody): boolean {
    return (body.isKnownCaller ? this.#known : this.#unknown).delete(body);
  }
}

/**
 * Requests whose bodies have not arrived yet. Such a request holds no slot: a client can send a head and wait, and thousands
 * that do would leave no slot to those who send all of it. So they are counted apart, in all and for each address. One more
 * than there may be closes the oldest, and those of callers that are not known come first:
 *
 *   head ──► unread ──► arrived ──► a slot, or `busy`
 *              ├── 5 s ─────────────────────────────────────────► `request_timeout`
 *              └── too many of its address or in all, or too many
 *                  bytes of all together, and it is the oldest ──► its connection is closed
 */
export class UnreadBodies {
  readonly bounds: UnreadBodyBounds;
  readonly #all = new OldestFirst();
  readonly #byBlock = new Map<string, OldestFirst>();
  readonly #closed = { address: 0, all: 0, bytes: 0 };
  #bytes = 0;

  constructor(bounds: UnreadBodyBounds) {
    this.bounds = bounds;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Requests that were closed so far because there were too many, by the bound that was met. */
  get closed(): Readonly<Record<"address" | "all" | "bytes", number>> {
    return this.#closed;
  }

  /** A body is awaited. `end` must follow when it has arrived or never will. */
  begin(body: UnreadBody): void {
    const { inAll, perAddress } = this.bounds;
    const ofBlock = this.#byBlock.get(body.block);
    if (ofBlock !== undefined && ofBlock.size >= perAddress) this.#closeOldest(ofBlock, "address");
    if (this.#all.size >= inAll) this.#closeOldest(this.#all, "all");
    this.#all.add(body);
    // Not `ofBlock`: it is gone if its last body was just closed.
    const now = this.#byBlock.get(body.block) ?? new OldestFirst();
    now.add(body);
    this.#byBlock.set(body.block, now);
  }

  /** So many bytes of it have arrived, and more are to come. The oldest is closed where all hold too many; it may be this one. */
  add(body: UnreadBody, bytes: number): void {
    body.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.bounds.bytes && this.size > 0) this.#closeOldest(this.#all, "bytes");
  }

  /** It has arrived, or never will. */
  end(body: UnreadBody): void {
    if (!this.#all.delete(body)) return;
    this.#bytes -= body.bytes;
    const ofBlock = this.#byBlock.get(body.block);
    ofBlock?.delete(body);
    if (ofBlock?.size === 0) this.#byBlock.delete(body.block);
  }

  #closeOldest(among: OldestFirst, bound: "address" | "all" | "bytes"): void {
    const { oldest } = among;
    if (oldest === undefined) return;
    this.#closed[bound] += 1;
    oldest.close();
  }
}
