/** Bounds the number of requests that wait for an answer, and of requests whose body has not arrived. */
import { LIMITS } from "../limits.ts";

/**
 * How many requests may wait for a service at once. A part of the slots is only for identified callers, so that the gateway
 * serves them during a flood of others.
 */
interface RequestSlotLimits {
  readonly requestsInFlight: number;
  readonly unknownRequestsInFlight: number;
}

export type Slot = "none" | "unknown" | "known";

export class RequestSlots {
  readonly #limits: RequestSlotLimits;
  #unknown = 0;
  #known = 0;

  constructor(limits: RequestSlotLimits) {
    this.#limits = limits;
  }

  /** The number of slots in use. */
  get size(): number {
    return this.#unknown + this.#known;
  }

  /** Exchanges a request's slot, if it has one, for a slot of this kind. False when none is free. */
  exchange(held: Slot, wanted: "unknown" | "known"): boolean {
    const { requestsInFlight, unknownRequestsInFlight } = this.#limits;
    const isFull = held === "none" && this.size >= requestsInFlight;
    if (isFull || (wanted === "unknown" && this.#unknown >= unknownRequestsInFlight)) return false;
    this.release(held);
    if (wanted === "known") this.#known += 1;
    else this.#unknown += 1;
    return true;
  }

  release(held: Slot): void {
    if (held === "known") this.#known -= 1;
    else if (held === "unknown") this.#unknown -= 1;
  }
}

export interface UnreadBody {
  /** The block of addresses under which throttles count the client. */
  readonly block: string;
  readonly isKnownCaller: boolean;
  /** Calls `end` at once, and closes the connection soon. */
  readonly close: () => void;
  /** The number of bytes that have arrived. `UnreadBodies` counts them. */
  bytes: number;
}

interface UnreadBodyBounds {
  readonly inAll: number;
  readonly perAddress: number;
  readonly bytes: number;
}

/** Derives the bounds of bodies from those of connections. */
export function unreadBodyBounds(connections: Pick<UnreadBodyBounds, "inAll" | "perAddress">): UnreadBodyBounds {
  const { unreadBodies, unreadBodiesShare, unreadBodyBytes } = LIMITS;
  return {
    inAll: Math.max(1, Math.min(unreadBodies, Math.floor(connections.inAll * unreadBodiesShare))),
    perAddress: connections.perAddress,
    bytes: unreadBodyBytes,
  };
}

/** Bodies, the earliest first, because a Set keeps the order of insertion. */
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
 * Requests whose bodies have not arrived yet. Such a request holds no slot: otherwise thousands of clients that send a head and
 * wait would take all slots. This class counts these requests in total and per address. At a bound it closes the oldest, first
 * of all those of unknown callers:
 *
 *   head ──► unread ──► arrived ──► a slot, or `busy`
 *              ├── 5 s ─────────────────────────────────────────► `request_timeout`
 *              └── the oldest, when its address or all have too
 *                  many bodies, or all have too many bytes ──────► its connection is closed
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

  /** How many requests the gateway has closed because there were too many, by the bound that was reached. */
  get closed(): Readonly<Record<"address" | "all" | "bytes", number>> {
    return this.#closed;
  }

  /** Counts a body that is to arrive. Call `end` when it has arrived or never will. */
  begin(body: UnreadBody): void {
    const { inAll, perAddress } = this.bounds;
    const ofBlock = this.#byBlock.get(body.block);
    if (ofBlock !== undefined && ofBlock.size >= perAddress) this.#closeOldest(ofBlock, "address");
    if (this.#all.size >= inAll) this.#closeOldest(this.#all, "all");
    this.#all.add(body);
    // Not `ofBlock`: `end` has removed it from the map if its last body was just closed.
    const now = this.#byBlock.get(body.block) ?? new OldestFirst();
    now.add(body);
    this.#byBlock.set(body.block, now);
  }

  /** Counts bytes of an incomplete body. Closes the oldest body when all together have too many bytes: it may be this one. */
  add(body: UnreadBody, bytes: number): void {
    body.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.bounds.bytes && this.size > 0) this.#closeOldest(this.#all, "bytes");
  }

  /** Removes a body that has arrived or never will. */
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
