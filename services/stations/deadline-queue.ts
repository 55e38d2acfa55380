/** One deadline per key, the earliest first: a binary heap in which an outdated entry is skipped when it comes up. */

interface Entry {
  readonly key: number;
  readonly dueMs: number;
}

export class DeadlineQueue {
  readonly #dueMs = new Map<number, number>();
  #heap: Entry[] = [];

  get size(): number {
    return this.#dueMs.size;
  }

  /** Sets or moves the deadline of a key. */
  set(key: number, dueMs: number): void {
    if (this.#dueMs.get(key) === dueMs) return;
    this.#dueMs.set(key, dueMs);
    this.#push({ key, dueMs });
    // A moved deadline leaves an outdated entry. The heap is rebuilt when most entries are outdated, to save memory.
    if (this.#heap.length > 2 * this.#dueMs.size + 64) this.#rebuild();
  }

  delete(key: number): void {
    this.#dueMs.delete(key);
  }

  /** Cheap, because the host asks hundreds of queues at each tick: an outdated entry counts as due, too. */
  isDue(nowMs: number): boolean {
    const first = this.#heap[0];
    return first !== undefined && first.dueMs <= nowMs;
  }

  /** Takes the keys whose deadline has come, the earliest first and `limit` at most; the others are due the next time. */
  takeDue(nowMs: number, limit = Number.POSITIVE_INFINITY): number[] {
    const due: number[] = [];
    for (let first = this.#heap[0]; first !== undefined && first.dueMs <= nowMs; first = this.#heap[0]) {
      if (due.length >= limit) break;
      this.#pop();
      if (this.#dueMs.get(first.key) !== first.dueMs) continue;
      this.#dueMs.delete(first.key);
      due.push(first.key);
    }
    return due;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Entry;
      if (above.dueMs <= entry.dueMs) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as Entry).dueMs < (heap[child] as Entry).dueMs) child += 1;
      if ((heap[child] as Entry).dueMs >= last.dueMs) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
  }

  #rebuild(): void {
    this.#heap = [];
    for (const [key, dueMs] of this.#dueMs) this.#push({ key, dueMs });
  }
}
