/**
 * How many connections each address holds. The server reports the address of a connection that opens, but not of one that
 * closes. So an address is known to hold no fewer than were opened from it less all that were closed from any address;
 * a recount by the kernel's table of connections makes the numbers exact again.
 */
export class AddressCounts {
  #opened = new Map<string, number>();
  #closed = 0;
  #isCounting = false;
  /** Whether connections were opened while they were counted, which the count may lack. */
  #hasMissed = false;

  /** How many addresses are remembered. */
  get size(): number {
    return this.#opened.size;
  }

  /** False when a recount would change something. */
  get isExact(): boolean {
    return this.#closed === 0 && !this.#hasMissed;
  }

  /** No fewer than these are open. */
  atLeast(block: string): number {
    return Math.max(0, this.atMost(block) - this.#closed);
  }

  /** No more than these are open, apart from a few that were opened while they were counted. */
  atMost(block: string): number {
    return this.#opened.get(block) ?? 0;
  }

  opened(block: string): void {
    this.#opened.set(block, this.atMost(block) + 1);
    this.#hasMissed ||= this.#isCounting;
  }

  /** One was closed; of which address is not known yet, or never. */
  closed(): void {
    this.#closed += 1;
  }

  /** The one that was just closed was this address's. */
  closedOf(block: string): void {
    this.#closed = Math.max(0, this.#closed - 1);
    const left = this.atMost(block) - 1;
    if (left > 0) this.#opened.set(block, left);
    else this.#opened.delete(block);
  }

  /** None is open. */
  clear(): void {
    this.#opened.clear();
    this.#closed = 0;
  }

  /** Replaces all numbers by what `read` counts. One at a time. */
  async recount(read: () => Promise<ReadonlyMap<string, number>>): Promise<void> {
    if (this.#isCounting) return;
    this.#isCounting = true;
    this.#hasMissed = false;
    const closedBefore = this.#closed;
    const counts = new Map(await read());
    this.#isCounting = false;
    // Closed meanwhile, or cleared: what is left of it is still unknown.
    this.#closed = Math.max(0, this.#closed - closedBefore);
    this.#opened = counts;
  }
}
