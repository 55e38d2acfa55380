/**
 * A bounded number of places. Some are kept for those whose target has just answered well; who finds none is called when
 * one is free, in the order in which they asked.
 */
export class Slots {
  #free: number;
  readonly #kept: number;
  readonly #healthyWaiting = new Set<() => void>();
  readonly #othersWaiting = new Set<() => void>();

  constructor({ count, keptForHealthy }: { readonly count: number; readonly keptForHealthy: number }) {
    this.#free = count;
    this.#kept = keptForHealthy;
  }

  /** Whether a place was taken; without one, `onFree` is called once, when there may be one. */
  take(isHealthy: boolean, onFree: () => void): boolean {
    const waiting = isHealthy ? this.#healthyWaiting : this.#othersWaiting;
    if (!this.#hasRoom(isHealthy)) {
      waiting.add(onFree);
      return false;
    }
    this.#free -= 1;
    waiting.delete(onFree);
    return true;
  }

  give(): void {
    this.#free += 1;
    this.#call(this.#healthyWaiting, true);
    this.#call(this.#othersWaiting, false);
  }

  forget(onFree: () => void): void {
    this.#healthyWaiting.delete(onFree);
    this.#othersWaiting.delete(onFree);
  }

  #hasRoom(isHealthy: boolean): boolean {
    return this.#free > (isHealthy ? 0 : this.#kept);
  }

  /** One after another, because the first may have no use for the place any more. */
  #call(waiting: Set<() => void>, isHealthy: boolean): void {
    for (const onFree of waiting) {
      if (!this.#hasRoom(isHealthy)) return;
      waiting.delete(onFree);
      onFree();
    }
  }
}
