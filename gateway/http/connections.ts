/**
 * How many connections there may be, in all and of one address, and what makes room for a new one:
 *
 *   opened ──► of this address too many? ── yes ──► its oldest unused one is closed, else the new one
 *     └──────► in all too many? ─────────── yes ──► the oldest unused one of all is closed, else the new one
 *
 * A connection is unused until its first request. So a device that connects and sends a request
 * at once finds room beside any number of idle connections. Long before that, the gateway or an address is crowded: then an
 * answer to a caller that is not known ends its connection, and only known ones stay open between requests.
 *
 * The bound in all is below the limit of open files: at that limit the server could not even close what is too much.
 */
import type { HttpResponse } from "uWebSockets.js";
import { addressBlock } from "../../services/bus/address-block.ts";
import type { Log } from "../../services/runtime/log.ts";
import { CONNECTION_LIMITS } from "../limits.ts";
import { addressText } from "./client-address.ts";
import { AddressCounts } from "./connection-counts.ts";

/** Where the connections of trusted proxies are counted, which is no address. */
const PROXIES = "trusted proxies";

export interface ConnectionBounds {
  readonly inAll: number;
  readonly perAddress: number;
}

export interface ConnectionsDeps {
  readonly bounds: ConnectionBounds;
  /** A trusted proxy carries the connections of many clients, so the bound of one address does not hold for it. */
  readonly isTrustedProxy: (address: string) => boolean;
  /** Counts the connections of each address; undefined where the system cannot, and then only unused ones count. */
  readonly countByAddress: () => Promise<ReadonlyMap<string, number> | undefined>;
  /** Whether the request that is being handled has been answered without a body. */
  readonly isAnswered: () => boolean;
  readonly log: Pick<Log, "warn">;
}

/** The bounds below the limit of open files; the settings may lower them. */
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

  /** Connections that are open now, WebSockets included. */
  get open(): number {
    return this.#open;
  }

  /** New connections that were closed at once so far, by the bound that they met. */
  get refused(): Readonly<Record<"address" | "all", number>> {
    return this.#refused;
  }

  /** Unused connections that were closed so far to make room for a new one. */
  get madeRoom(): Readonly<Record<"address" | "all", number>> {
    return this.#madeRoom;
  }

  /** A connection was opened. It may be closed when this returns. */
  opened(res: HttpResponse): void {
    this.#open += 1;
    const address = addressText(new Uint8Array(res.getRemoteAddress()));
    const block = addressBlock(address);
    const isProxy = this.#deps.isTrustedProxy(address);
    if (!isProxy && !this.#hasRoomFor(block)) return this.#refuse(res, "address", block);
    if (this.#open > this.bounds.inAll) {
      if (!this.unused.closeOldest()) return this.#refuse(res, "all", block);
      this.#madeRoom.all += 1;
    }
    // A proxy's are counted under no address, so that each that closes was counted.
    const counted = isProxy ? PROXIES : block;
    this.#counts.opened(counted);
    this.unused.add(res, block, () => this.#counts.closedOf(counted));
  }

  /** A connection was closed; of which address, the server does not report. */
  closed(): void {
    this.#open -= 1;
    if (this.#isRefusing) return;
    this.#counts.closed();
    if (this.#open === 0) this.#counts.clear();
  }

  /** Whether the connection of a caller that is not known is to end with its answer. */
  isCrowded(block: () => string): boolean {
    if (this.#open >= this.#crowdedFrom.inAll) return true;
    // As long as all of them are fewer, none of them can hold as many.
    const { ofAddress } = this.#crowdedFrom;
    return this.#open >= ofAddress && this.#counts.atLeast(block()) >= ofAddress;
  }

  #hasRoomFor(block: string): boolean {
    // Addresses whose connections are all closed are forgotten by counting as well.
    const isWorthIt =
      this.#counts.atMost(block) >= this.#crowdedFrom.ofAddress ||
      this.#counts.size > this.#open + CONNECTION_LIMITS.unopenedAddresses;
    if (isWorthIt && !this.#counts.isExact) this.#recount();
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
      (await this.#deps.countByAddress()) ?? this.unused.counts();
    void this.#counts.recount(count);
  }
}

interface UnusedConnection {
  readonly res: HttpResponse;
  /** The address as it is counted. */
  readonly block: string;
}

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
class UnusedConnections {
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
