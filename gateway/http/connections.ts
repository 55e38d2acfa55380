/**
 * The bounds of open connections, in total and per address, and which connection the gateway closes at a bound:
 *
 *   opened ──► too many of this address? ── yes ──► closes the oldest unused one of the address, or else the new one
 *     └──────► too many in total? ───────── yes ──► closes the oldest unused one of all, or else the new one
 *
 * A connection is unused until its first request. So a device that connects and sends a request at once finds room beside any
 * number of idle connections. Below the bounds, the gateway or an address counts as crowded: then the gateway closes the
 * connection of an unknown caller with its answer, and keeps only those of known callers open between requests.
 *
 * The total bound is below the limit of open files: at that limit the server could not even accept a connection to close it.
 */
import type { HttpResponse } from "uWebSockets.js";
import { addressBlock } from "../../services/bus/address-block.ts";
import type { Log } from "../../services/runtime/log.ts";
import { CONNECTION_LIMITS } from "../limits.ts";
import { addressText } from "./client-address.ts";
import { AddressCounts } from "./connection-counts.ts";

/** The key under which the connections of all trusted proxies are counted, in place of an address. */
const PROXIES = "trusted proxies";

interface ConnectionBounds {
  readonly inAll: number;
  readonly perAddress: number;
}

export interface ConnectionsDeps {
  readonly bounds: ConnectionBounds;
  /** A trusted proxy connects for many clients, so the bound per address does not apply to it. */
  readonly isTrustedProxy: (address: string) => boolean;
  /** Counts the connections of each key. Undefined where the system cannot count: then only unused ones count. */
  readonly countByAddress: (keyOf: (address: string) => string) => Promise<ReadonlyMap<string, number> | undefined>;
  /** Whether the current request has been answered without a body. */
  readonly isAnswered: () => boolean;
  readonly log: Pick<Log, "warn">;
}

/** The bounds, which the settings may lower. The total stays below the limit of open files. */
export function connectionBounds(options: {
  readonly openFiles: number | undefined;
  readonly inAll: number | undefined;
  readonly perAddress: number | undefined;
}): ConnectionBounds {
  const { connections, connectionsPerAddress, otherFiles, shareOfOneAddress } = CONNECTION_LIMITS;
  const { openFiles = Number.POSITIVE_INFINITY } = options;
  const below = Math.max(openFiles - otherFiles, Math.floor(openFiles / 2));
  const inAll = Math.min(options.inAll ?? connections, below);
  const most = Math.max(1, Math.floor(inAll * shareOfOneAddress));
  return { inAll, perAddress: Math.min(options.perAddress ?? connectionsPerAddress, most) };
}

export class Connections {
  readonly bounds: ConnectionBounds;
  readonly unused: UnusedConnections;
  readonly #deps: ConnectionsDeps;
  readonly #counts = new AddressCounts();
  readonly #crowdedFrom: { readonly inAll: number; readonly ofAddress: number };
  readonly #refused = { address: 0, all: 0 };
  readonly #madeRoom = { address: 0, all: 0 };
  #open = 0;
  #isRefusing = false;
  #countedAtMs = Number.NEGATIVE_INFINITY;
  #loggedAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps;
    this.unused = new UnusedConnections(deps.isAnswered);
    this.bounds = deps.bounds;
    this.#crowdedFrom = {
      inAll: Math.ceil(deps.bounds.inAll * CONNECTION_LIMITS.crowdedShare),
      ofAddress: Math.ceil(deps.bounds.perAddress * CONNECTION_LIMITS.crowdedShareOfAddress),
    };
  }

  /** Connections that are open now, including WebSockets. */
  get open(): number {
    return this.#open;
  }

  /** How many new connections the gateway has closed at once, by the bound that was reached. */
  get refused(): Readonly<Record<"address" | "all", number>> {
    return this.#refused;
  }

  /** How many unused connections the gateway has closed to make room for a new one. */
  get madeRoom(): Readonly<Record<"address" | "all", number>> {
    return this.#madeRoom;
  }

  /** Counts a connection that was opened. The method may close it. */
  opened(res: HttpResponse): void {
    this.#open += 1;
    const address = addressText(new Uint8Array(res.getRemoteAddress()));
    const block = addressBlock(address);
    const counted = this.#keyOf(address);
    if (counted !== PROXIES && !this.#hasRoomFor(block)) return this.#refuse(res, "address", block);
    if (this.#open > this.bounds.inAll) {
      if (!this.unused.closeOldest()) return this.#refuse(res, "all", block);
      this.#madeRoom.all += 1;
    }
    // A proxy's connections are counted too, because `closed` does not know whose connection it counts down.
    this.#counts.opened(counted);
    this.unused.add(res, block, () => this.#counts.closedOf(counted));
  }

  /** Counts a connection that was closed. The server does not report its address. */
  closed(): void {
    this.#open -= 1;
    if (this.#isRefusing) return;
    this.#counts.closed();
    if (this.#open === 0) this.#counts.clear();
  }

  /** Whether the gateway must close the connection of an unknown caller with its answer. `peer`: who has connected. */
  isCrowded(peer: () => string): boolean {
    if (this.#open >= this.#crowdedFrom.inAll) return true;
    // One address cannot have more connections than all addresses together.
    const { ofAddress } = this.#crowdedFrom;
    if (this.#open < ofAddress) return false;
    const counted = this.#keyOf(peer());
    return counted !== PROXIES && this.#counts.atLeast(counted) >= ofAddress;
  }

  /** The key under which the connections of an address are counted. */
  #keyOf(address: string): string {
    return this.#deps.isTrustedProxy(address) ? PROXIES : addressBlock(address);
  }

  #hasRoomFor(block: string): boolean {
    // A count also removes the addresses whose connections are all closed.
    const needsRecount =
      this.#counts.atMost(block) >= this.#crowdedFrom.ofAddress ||
      this.#counts.size > this.#open + CONNECTION_LIMITS.unopenedAddresses;
    if (needsRecount && !this.#counts.isExact) this.#recount();
    if (this.#counts.atLeast(block) < this.bounds.perAddress) return true;
    const hasMadeRoom = this.unused.closeOldest(block);
    if (hasMadeRoom) this.#madeRoom.address += 1;
    return hasMadeRoom;
  }

  #refuse(res: HttpResponse, bound: "address" | "all", block: string): void {
    this.#refused[bound] += 1;
    this.#isRefusing = true;
    res.close();
    this.#isRefusing = false;
    const nowMs = performance.now();
    if (nowMs - this.#loggedAtMs < CONNECTION_LIMITS.logMs) return;
    this.#loggedAtMs = nowMs;
    const { open, refused, bounds } = this;
    this.#deps.log.warn({ bound, address: block, open, refused, bounds }, "new connections are refused");
  }

  #recount(): void {
    const nowMs = performance.now();
    if (nowMs - this.#countedAtMs < CONNECTION_LIMITS.recountMs) return;
    this.#countedAtMs = nowMs;
    const count = async (): Promise<ReadonlyMap<string, number>> =>
      (await this.#deps.countByAddress((address) => this.#keyOf(address))) ?? this.unused.counts();
    void this.#counts.recount(count);
  }
}

interface UnusedConnection {
  readonly res: HttpResponse;
  /** The block of addresses under which the connection is counted. */
  readonly block: string;
}

/**
 * Connections on which no request has arrived yet, oldest first. A flood of idle connections consists of these, and the
 * gateway closes them to make room. The server closes an idle connection by itself, but only after ten seconds. The number
 * per address is bounded, because `recognise` checks each: once it is reached, this class ignores further connections.
 *
 * When a connection opens, the server passes `filter` an object that refers to the connection's memory. The server does not
 * mark the object when a later request ends or the connection closes, and using it then is a use of freed memory. So this
 * class keeps the object only while the server is certain to make one of two calls:
 *
 *   opened ──► unused ── closed before a request ──► `onAborted`, which also marks the object
 *                └────── first request ────────────► `onData`, which the server calls behind each request, body or not
 *
 * With a handler for `onData`, the server stops the timer that closes idle connections, because it expects the response later.
 * When the response has already ended, the handler starts the timer again.
 *
 * A request whose body is read replaces both handlers. Its exchange calls `recognise` at its end, while the memory is still
 * valid. The request's connection is the one that has sent an answer's body, or that has no remote address any more. After an
 * upgrade the server makes neither call, so the upgrade first calls `forget` for its address. An answer that may close its
 * connection during the write waits for the turn after `onData` (`exchange.ts`).
 */
class UnusedConnections {
  readonly #isAnswered: () => boolean;
  /** Oldest first, because a Set keeps the order of insertion. */
  readonly #all = new Set<UnusedConnection>();
  readonly #byBlock = new Map<string, Set<UnusedConnection>>();

  constructor(isAnswered: () => boolean) {
    this.#isAnswered = isAnswered;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Keeps a new connection unless its address has enough here. Calls `onClosed` if it closes before its first request. */
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

  /** How many unused connections each address has. */
  counts(): ReadonlyMap<string, number> {
    return new Map([...this.#byBlock].map(([block, { size }]) => [block, size]));
  }

  /** Whether this address has unused connections. */
  has(block: string): boolean {
    return this.#byBlock.has(block);
  }

  /** Closes the oldest connection, of one address or of all. False when there is none. */
  closeOldest(block?: string): boolean {
    const [oldest] = block === undefined ? this.#all : (this.#byBlock.get(block) ?? []);
    if (oldest === undefined) return false;
    this.#forget(oldest);
    oldest.res.close();
    return true;
  }

  /** Removes the connection of a request that has ended and whose body was read. `isClosed`: the connection was closed. */
  recognise(block: string, isClosed: boolean): void {
    for (const connection of this.#byBlock.get(block) ?? []) {
      const { res } = connection;
      // Checked last, because reading a remote address costs a system call.
      if (res.getWriteOffset() > 0 || (isClosed && res.getRemoteAddress().byteLength === 0)) this.#forget(connection);
    }
  }

  /** Removes all connections of this address. The server closes them after ten seconds, unless they send a request. */
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

/** The server has no call that only restarts the timer. `resume` does, and reading continues as before. */
function restartIdleTimer(res: HttpResponse): void {
  res.pause();
  res.resume();
}
