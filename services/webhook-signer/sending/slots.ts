/** A bounded number of places; who finds none is called when one is free, in the order in which they asked. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Whether a place was taken; without one, `onFree` is called once, when there may be one. */
  take(onFree: () => void): boolean {
    if (this.#free > 0) {
      this.#free -= 1;
      this.#waiting.delete(onFree);
      return true;
    }
    this.#waiting.add(onFree);
    return false;
  }

  give(): void {
    this.#free += 1;
    const [first] = this.#waiting;
    if (first === undefined) return;
    this.#waiting.delete(first);
    first();
  }

  forget(onFree: () => void): void {
    this.#waiting.delete(onFree);
  }
}
