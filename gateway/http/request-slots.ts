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
