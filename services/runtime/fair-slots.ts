/**
 * Slots for work that runs at the same time, shared fairly between keys. One key never holds more than its share, so
 * work of one key that hangs leaves slots for the others. Work that waits gets a slot in turn, key by key.
 *
 * Keys may belong to groups: the configs that ask one provider, or what one client address sends. A group takes no slot
 * that would leave it more than is free for all others: one alone holds half of all, two a third each. Groups have their
 * turn first, then the keys in them.
 */
export interface FairSlotsOptions {
  /** Slots in all, and slots that one key may hold. */
  readonly total: number;
  readonly perKey: number;
  /** The last slots of each group are for its keys that hold none; 0 unless given. */
  readonly keptForNewKeys?: number;
  /**
   * Work that may wait in all, and of one key of one group. With one more in all, the newest of the group and key with the
   * most waiting work gets no slot.
   */
  readonly waiting: number;
  readonly waitingPerKey: number;
}

/** Gives the slot back; a second call has no effect. */
export type ReleaseSlot = () => void;

interface Waiter {
  readonly take: (release: ReleaseSlot | undefined) => void;
  readonly timer: NodeJS.Timeout;
}

/** Of one group: by key, in the order in which the keys have their turn. */
type Queues<TKey> = Map<TKey, Waiter[]>;

export class FairSlots<TKey, TGroup = never> {
  readonly #options: FairSlotsOptions;
  readonly #held = new Map<TKey, number>();
  readonly #heldOfGroup = new Map<TGroup, number>();
  /** In the order in which the groups have their turn. Work without a group is under `undefined`. */
  readonly #waiting = new Map<TGroup | undefined, Queues<TKey>>();
  #heldInAll = 0;
  #waitingInAll = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  /** Slots that are free in all. */
  get free(): number {
    return this.#options.total - this.#heldInAll;
  }

  /** How many slots each key may still take by its share, for the keys that hold some. */
  freeOfHolders(): { readonly key: TKey; readonly free: number }[] {
    return [...this.#held].map(([key, held]) => ({ key, free: this.#options.perKey - held }));
  }

  /** How many slots each group may still take, for the groups that hold some. */
  roomOfHolders(): { readonly group: TGroup; readonly room: number }[] {
    return [...this.#heldOfGroup.keys()].map((group) => ({ group, room: this.#room(group) }));
  }

  /** How many slots a group that holds none may take. */
  get roomOfNewGroup(): number {
    return Math.ceil(this.free / 2);
  }

  /** A slot now, without waiting; undefined when there is none for this key. */
  tryAcquire(key: TKey, group?: TGroup): ReleaseSlot | undefined {
    return this.#hasFree(key, group) ? this.#take(key, group) : undefined;
  }

  /** A slot within `maxWaitMs`; undefined when the time is over, or when too much work waits. */
  async acquire(key: TKey, maxWaitMs: number, group?: TGroup): Promise<ReleaseSlot | undefined> {
    const waiting = this.#waitingOf(key, group).length;
    if (waiting === 0 && this.#hasFree(key, group)) return this.#take(key, group);
    if (waiting >= this.#options.waitingPerKey) return undefined;
    if (this.#waitingInAll >= this.#options.waiting && !this.#makeRoomFor(key, group)) return undefined;
    return await new Promise((resolve) => {
      const timer = setTimeout(() => this.#abandon(waiter, key, group), maxWaitMs).unref();
      const waiter: Waiter = { take: resolve, timer };
      this.#add(waiter, key, group);
    });
  }

  /** Ends all waiting: each waiter gets no slot. */
  stopWaiting(): void {
    for (const [group, queues] of this.#waiting) {
      for (const [key, queue] of queues) {
        for (let [waiter] = queue; waiter !== undefined; [waiter] = queue) this.#abandon(waiter, key, group);
      }
    }
  }

  #hasFree(key: TKey, group: TGroup | undefined): boolean {
    const held = this.#held.get(key) ?? 0;
    const room = this.#room(group);
    const { perKey, keptForNewKeys = 0 } = this.#options;
    return held < perKey && room > (held === 0 ? 0 : keptForNewKeys);
  }

  #room(group: TGroup | undefined): number {
    if (group === undefined) return this.free;
    return Math.max(0, Math.ceil((this.free - (this.#heldOfGroup.get(group) ?? 0)) / 2));
  }

  #take(key: TKey, group: TGroup | undefined): ReleaseSlot {
    this.#heldInAll += 1;
    addTo(this.#held, key, 1);
    if (group !== undefined) addTo(this.#heldOfGroup, group, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#heldInAll -= 1;
      addTo(this.#held, key, -1);
      if (group !== undefined) addTo(this.#heldOfGroup, group, -1);
      this.#serveNext();
    };
  }

  #serveNext(): void {
    for (const [group, queues] of this.#waiting) {
      if (this.#room(group) === 0) continue;
      for (const [key, queue] of queues) {
        const [waiter] = queue;
        if (waiter === undefined || !this.#hasFree(key, group)) continue;
        this.#remove(waiter, key, group);
        // Both go behind the others.
        if (queue.length > 0) moveToEnd(queues, key, queue);
        if (queues.size > 0) moveToEnd(this.#waiting, group, queues);
        clearTimeout(waiter.timer);
        waiter.take(this.#take(key, group));
        return;
      }
    }
  }

  /** Abandons the newest work of the group and key with the most; false where that would be this very work. */
  #makeRoomFor(key: TKey, group: TGroup | undefined): boolean {
    const longestOf = this.#longestGroup();
    if (longestOf === undefined) return false;
    const isOtherGroup = this.#waitingOfGroup(longestOf.group) > this.#waitingOfGroup(group) + 1;
    const from = isOtherGroup ? longestOf.group : group;
    const longest = [...(this.#waiting.get(from) ?? [])].reduce<[TKey, Waiter[]] | undefined>(
      (most, each) => (most === undefined || each[1].length >= most[1].length ? each : most),
      undefined,
    );
    if (longest === undefined) return false;
    const [longestKey, queue] = longest;
    if (!isOtherGroup && queue.length <= this.#waitingOf(key, group).length + 1) return false;
    const newest = queue.at(-1);
    if (newest !== undefined) this.#abandon(newest, longestKey, from);
    return true;
  }

  #longestGroup(): { readonly group: TGroup | undefined } | undefined {
    let longest: { readonly group: TGroup | undefined; readonly waiting: number } | undefined;
    for (const group of this.#waiting.keys()) {
      const waiting = this.#waitingOfGroup(group);
      if (longest === undefined || waiting > longest.waiting) longest = { group, waiting };
    }
    return longest;
  }

  #waitingOf(key: TKey, group: TGroup | undefined): readonly Waiter[] {
    return this.#waiting.get(group)?.get(key) ?? [];
  }

  #waitingOfGroup(group: TGroup | undefined): number {
    let waiting = 0;
    for (const queue of this.#waiting.get(group)?.values() ?? []) waiting += queue.length;
    return waiting;
  }

  #abandon(waiter: Waiter, key: TKey, group: TGroup | undefined): void {
    clearTimeout(waiter.timer);
    this.#remove(waiter, key, group);
    waiter.take(undefined);
  }

  #add(waiter: Waiter, key: TKey, group: TGroup | undefined): void {
    const queues: Queues<TKey> = this.#waiting.get(group) ?? new Map<TKey, Waiter[]>();
    this.#waiting.set(group, queues);
    const queue = queues.get(key);
    if (queue === undefined) queues.set(key, [waiter]);
    else queue.push(waiter);
    this.#waitingInAll += 1;
  }

  #remove(waiter: Waiter, key: TKey, group: TGroup | undefined): void {
    const queues = this.#waiting.get(group);
    const queue = queues?.get(key);
    const place = queue?.indexOf(waiter) ?? -1;
    if (queues === undefined || queue === undefined || place < 0) return;
    queue.splice(place, 1);
    this.#waitingInAll -= 1;
    if (queue.length === 0) queues.delete(key);
    if (queues.size === 0) this.#waiting.delete(group);
  }
}

function addTo<TKey>(counts: Map<TKey, number>, key: TKey, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

function moveToEnd<TKey, TValue>(map: Map<TKey, TValue>, key: TKey, value: TValue): void {
  map.delete(key);
  map.set(key, value);
}
