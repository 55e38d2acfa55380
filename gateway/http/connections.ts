/**
 * How many connections there may be, in all and of one address, and what makes room for a new one:
 *
 *   opened ──► of this address too many? ── yes ──► its oldest unused one is closed, else the new one
 *     └──────► in all too many? ─────────── yes ──► the oldest unused one of all is closed, else the new one
 *
 * A connection is unused until its first request (`unused-connections.ts`). So a device that connects and sends a request
 * at once finds room beside any number of idle connections. Long before that, the gateway or an address is crowded: then an
 * answer to a caller that is not known ends its connection, and only known ones stay open between requests.
 *
 * The bound in all is below the limit of open files: at that limit the server could not even close what is too much.
 */
import type { HttpResponse } from "uWebSockets.js";
import { addressBlock } from "../../services/bus/address-block.ts";
import type { Log } from "../../services/runtime/log.ts";
import { AddressCounts } from "./address-counts.ts";
import { addressText } from "./client-address.ts";
import { CONNECTION_LIMITS } from "./limits.ts";
import { UnusedConnections } from "./unused-connections.ts";

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
