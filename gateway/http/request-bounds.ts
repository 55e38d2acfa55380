/** How many requests there may be at once: those that wait for an answer, and those whose body has not arrived. */
import { LIMITS } from "../limits.ts";

/**
 * How many requests may wait for something other than memory and their body at once. A part of the slots is for callers
 * that have shown who they are, so that a flood of others leaves them served.
 */
export interface RequestSlotLimits {
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

  /** Slots that are taken. */
  get size(): number {
    return this.#unknown + this.#known;
  }

  /** Exchanges the slot that a request holds, if any, for one of this kind; false where none is free. */
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
