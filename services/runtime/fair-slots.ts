/**
 * Slots for concurrent work, shared fairly between keys. One key never holds more than its share, so when the work of
 * one key hangs, the others still have slots. Waiting work gets slots in turn, key by key.
 *
 * Keys may belong to groups: the configs that ask one provider, or what one client address sends. A group never holds
 * more slots than are free for all others: one group alone holds half of all slots, two groups a third each. Groups
 * have their turn first, then the keys in a group.
 */
interface FairSlotsOptions {
  /** The number of slots, and how many of them one key may hold. */
  readonly total: number;
  readonly perKey: number;
  /** So many last slots of each group are for keys that hold no slot in the group; 0 by default. */
  readonly keptForNewKeys?: number;
  /**
   * How much work may wait in total, and for one key of one group. When the total is exceeded, the newest waiting work
   * of the group and key with the most waiting work gets no slot.
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

/** A group. All work without a group is one more group, which may take all free slots. */
interface Group<TKey> {
  held: number;
  readonly heldOfKeys: Map<TKey, number>;
  waiting: number;
  /** By key, in the order in which the keys have their turn. */
  readonly queues: Map<TKey, Waiter[]>;
}

export class FairSlots<TKey, TGroup = never> {
  readonly #options: FairSlotsOptions;
  readonly #heldOfKeys = new Map<TKey, number>();
  /** The groups that hold slots or have waiting work, in the order in which they have their turn. */
  readonly #groups = new Map<TGroup | undefined, Group<TKey>>();
  #heldInAll = 0;
  #waitingInAll = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  /** How many slots are free. */
  get free(): number {
    return this.#options.total - this.#heldInAll;
  }

  /** How many slots each key may still take by its share, for the keys that hold some. */
  freeOfHolders(): { readonly key: TKey; readonly free: number }[] {
    return [...this.#heldOfKeys].map(([key, held]) => ({ key, free: this.#options.perKey - held }));
  }

  /** How many slots each group may still take, for the groups that hold some. */
  roomOfHolders(): { readonly group: TGroup; readonly room: number }[] {
    const rooms: { readonly group: TGroup; readonly room: number }[] = [];
    for (const [group, { held }] of this.#groups) {
      if (group !== undefined && held > 0) rooms.push({ group, room: this.#room(group) });
    }
    return rooms;
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
    const waiting = this.#groups.get(group)?.queues.get(key)?.length ?? 0;
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
    for (const [group, { queues }] of this.#groups) {
      for (const [key, queue] of queues) {
        for (let [waiter] = queue; waiter !== undefined; [waiter] = queue) this.#abandon(waiter, key, group);
      }
    }
  }

  #hasFree(key: TKey, group: TGroup | undefined): boolean {
    const { perKey, keptForNewKeys = 0 } = this.#options;
    if ((this.#heldOfKeys.get(key) ?? 0) >= perKey) return false;
    const isNew = this.#groups.get(group)?.heldOfKeys.has(key) !== true;
    return this.#room(group) > (isNew ? 0 : keptForNewKeys);
  }

  #room(group: TGroup | undefined): number {
    if (group === undefined) return this.free;
    return Math.max(0, Math.ceil((this.free - (this.#groups.get(group)?.held ?? 0)) / 2));
  }

  #take(key: TKey, group: TGroup | undefined): ReleaseSlot {
    this.#count(key, group, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#count(key, group, -1);
      this.#serveNext();
    };
  }

  #count(key: TKey, group: TGroup | undefined, change: 1 | -1): void {
    this.#heldInAll += change;
    addTo(this.#heldOfKeys, key, change);
    const counted = this.#groupOf(group);
    counted.held += change;
    addTo(counted.heldOfKeys, key, change);
    this.#forgetIfIdle(group, counted);
  }

  #serveNext(): void {
    for (const [name, group] of this.#groups) {
      if (group.waiting === 0 || this.#room(name) === 0) continue;
      for (const [key, queue] of group.queues) {
        const [waiter] = queue;
        if (waiter === undefined || !this.#hasFree(key, name)) continue;
        const release = this.#take(key, name);
        this.#remove(waiter, key, name);
        // The key and the group go to the end of their queues.
        if (queue.length > 0) moveToEnd(group.queues, key, queue);
        moveToEnd(this.#groups, name, group);
        clearTimeout(waiter.timer);
        waiter.take(release);
        return;
      }
    }
  }

  /**
   * Abandons the newest waiting work of the group and key with the most waiting work. Returns false where that is the
   * new work itself.
   */
  #makeRoomFor(key: TKey, group: TGroup | undefined): boolean {
    let [from, longest]: readonly [TGroup | undefined, Group<TKey> | undefined] = [group, this.#groups.get(group)];
    let most = (longest?.waiting ?? 0) + 1;
    for (const [name, each] of this.#groups) {
      if (each.waiting > most) [from, longest, most] = [name, each, each.waiting];
    }
    const isOther = longest !== this.#groups.get(group);
    const least = isOther ? 0 : (longest?.queues.get(key)?.length ?? 0) + 1;
    let found: { readonly key: TKey; readonly queue: readonly Waiter[] } | undefined;
    for (const [name, queue] of longest?.queues ?? []) {
      if (queue.length > least && queue.length >= (found?.queue.length ?? 0)) found = { key: name, queue };
    }
    const newest = found?.queue.at(-1);
    if (found === undefined || newest === undefined) return false;
    this.#abandon(newest, found.key, from);
    return true;
  }

  #abandon(waiter: Waiter, key: TKey, group: TGroup | undefined): void {
    clearTimeout(waiter.timer);
    this.#remove(waiter, key, group);
    waiter.take(undefined);
  }

  #add(waiter: Waiter, key: TKey, name: TGroup | undefined): void {
    const group = this.#groupOf(name);
    const queue = group.queues.get(key);
    if (queue === undefined) group.queues.set(key, [waiter]);
    else queue.push(waiter);
    group.waiting += 1;
    this.#waitingInAll += 1;
  }

  #remove(waiter: Waiter, key: TKey, name: TGroup | undefined): void {
    const group = this.#groups.get(name);
    const queue = group?.queues.get(key);
    const place = queue?.indexOf(waiter) ?? -1;
    if (group === undefined || queue === undefined || place < 0) return;
    queue.splice(place, 1);
    if (queue.length === 0) group.queues.delete(key);
    group.waiting -= 1;
    this.#waitingInAll -= 1;
    this.#forgetIfIdle(name, group);
  }

  #groupOf(name: TGroup | undefined): Group<TKey> {
    const known = this.#groups.get(name);
    if (known !== undefined) return known;
    const group: Group<TKey> = { held: 0, heldOfKeys: new Map(), waiting: 0, queues: new Map() };
    this.#groups.set(name, group);
    return group;
  }

  #forgetIfIdle(name: TGroup | undefined, { held, waiting }: Group<TKey>): void {
    if (held === 0 && waiting === 0) this.#groups.delete(name);
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
