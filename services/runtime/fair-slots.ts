/**
 * Slots for work that runs at the same time, shared fairly between keys. One key never holds more than its share, so
 * work of one key that hangs leaves slots for the others. Work that waits gets a slot in turn, key by key.
 */
export interface FairSlotsOptions {
  /** Slots in all, and slots that one key may hold. */
  readonly total: number;
  readonly perKey: number;
  /** Work that may wait in all, and of one key. */
  readonly waiting: number;
  readonly waitingPerKey: number;
}

/** Gives the slot back; a second call has no effect. */
export type ReleaseSlot = () => void;

interface Waiter {
  readonly take: (release: ReleaseSlot | undefined) => void;
  readonly timer: NodeJS.Timeout;
}

export class FairSlots<TKey> {
  readonly #options: FairSlotsOptions;
  readonly #held = new Map<TKey, number>();
  /** In the order in which the keys have their turn. */
  readonly #queues = new Map<TKey, Waiter[]>();
  #heldInAll = 0;
  #waitingInAll = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  /** Slots that are free in all. */
  get free(): number {
    return this.#options.total - this.#heldInAll;
  }

  /** How many slots each key may still take, for the keys that hold some. */
  freeOfHolders(): { readonly key: TKey; readonly free: number }[] {
    return [...this.#held].map(([key, held]) => ({ key, free: this.#options.perKey - held }));
  }

  /** A slot now, without waiting; undefined when there is none for this key. */
  tryAcquire(key: TKey): ReleaseSlot | undefined {
    return this.#hasFree(key) ? this.#take(key) : undefined;
  }

  /** A slot within `maxWaitMs`; undefined when the time is over, or at once when too much work waits already. */
  async acquire(key: TKey, maxWaitMs: number): Promise<ReleaseSlot | undefined> {
    const queue = this.#queues.get(key);
    if (queue === undefined && this.#hasFree(key)) return this.#take(key);
    const { waiting, waitingPerKey } = this.#options;
    if (this.#waitingInAll >= waiting || (queue?.length ?? 0) >= waitingPerKey) return undefined;
    return await new Promise((resolve) => {
      const waiter: Waiter = { take: resolve, timer: setTimeout(() => this.#abandon(key, waiter), maxWaitMs).unref() };
      if (queue === undefined) this.#queues.set(key, [waiter]);
      else queue.push(waiter);
      this.#waitingInAll += 1;
    });
  }

  /** Ends all waiting: each waiter gets no slot. */
  stopWaiting(): void {
    for (const [key, queue] of this.#queues) {
      for (let [waiter] = queue; waiter !== undefined; [waiter] = queue) this.#abandon(key, waiter);
    }
  }

  #hasFree(key: TKey): boolean {
    return this.#heldInAll < this.#options.total && (this.#held.get(key) ?? 0) < this.#options.perKey;
  }

  #take(key: TKey): ReleaseSlot {
    this.#heldInAll += 1;
    this.#held.set(key, (this.#held.get(key) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#heldInAll -= 1;
      const held = (this.#held.get(key) ?? 1) - 1;
      if (held === 0) this.#held.delete(key);
      else this.#held.set(key, held);
      this.#serveNext();
    };
  }

  #serveNext(): void {
    for (const [key, queue] of this.#queues) {
      if (!this.#hasFree(key)) continue;
      const waiter = queue[0];
      if (waiter === undefined) continue;
      this.#remove(key, waiter);
      // The key goes behind the others.
      if (queue.length > 0) {
        this.#queues.delete(key);
        this.#queues.set(key, queue);
      }
      clearTimeout(waiter.timer);
      waiter.take(this.#take(key));
      return;
    }
  }

  #abandon(key: TKey, waiter: Waiter): void {
    clearTimeout(waiter.timer);
    this.#remove(key, waiter);
    waiter.take(undefined);
  }

  #remove(key: TKey, waiter: Waiter): void {
    const queue = this.#queues.get(key);
    const place = queue?.indexOf(waiter) ?? -1;
    if (queue === undefined || place < 0) return;
    queue.splice(place, 1);
    this.#waitingInAll -= 1;
    if (queue.length === 0) this.#queues.delete(key);
  }
}
