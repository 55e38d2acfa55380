/**
 * A bounded number of places. Some are kept for those whose target answered promptly the last time, and some for those whose
 * target has not answered yet, so that however many slow ones there are, neither waits for them. A caller that finds no
 * place is called when one is free, in the order of the requests.
 */
import { SIGNER_LIMITS } from "../limits.ts";

/** How the target answered the last time: within `promptMs` and well; not yet, or not since it was left alone; otherwise. */
export type Pace = "prompt" | "untried" | "slow";

/** Who is called first. */
const PACES: readonly Pace[] = ["prompt", "untried", "slow"];

export class Slots {
  #free: number;
  readonly #kept: Readonly<Record<Pace, number>>;
  readonly #taken: Record<Pace, number> = { prompt: 0, untried: 0, slow: 0 };
  readonly #waiting: Readonly<Record<Pace, Set<() => void>>> = {
    prompt: new Set(),
    untried: new Set(),
    slow: new Set(),
  };

  constructor({ count, keptForPrompt, keptForUntried }: SlotsShape) {
    this.#free = count;
    this.#kept = { prompt: keptForPrompt, untried: keptForUntried, slow: 0 };
  }

  /** Whether one is free that is not kept for others. */
  hasRoom(pace: Pace): boolean {
    let keptForOthers = 0;
    for (const other of PACES) {
      if (other !== pace) keptForOthers += Math.max(0, this.#kept[other] - this.#taken[other]);
    }
    return this.#free > keptForOthers;
  }

  /** Whether a place was taken; without one, `onFree` is called once, when there may be one. */
  take(pace: Pace, onFree?: () => void): boolean {
    if (!this.hasRoom(pace)) {
      if (onFree !== undefined) this.#waiting[pace].add(onFree);
      return false;
    }
    this.#free -= 1;
    this.#taken[pace] += 1;
    if (onFree !== undefined) this.#waiting[pace].delete(onFree);
    return true;
  }

  /** Gives back a place that was taken at this pace. */
  give(pace: Pace): void {
    this.#free += 1;
    this.#taken[pace] -= 1;
    for (const waiting of PACES) this.#call(waiting);
  }

  forget(onFree: () => void): void {
    for (const pace of PACES) this.#waiting[pace].delete(onFree);
  }

  /** One after another, because the first may have no use for the place any more. */
  #call(pace: Pace): void {
    const waiting = this.#waiting[pace];
    for (const onFree of waiting) {
      if (!this.hasRoom(pace)) return;
      waiting.delete(onFree);
      onFree();
    }
  }
}

export interface SlotsShape {
  readonly count: number;
  readonly keptForPrompt: number;
  readonly keptForUntried: number;
}

/** Places for owners' tests under way in this process: one endpoint, and one owner, take only so many of them. */
export class TestPlaces {
  readonly #endpoints = new Set<number>();
  readonly #ofOwner = new Map<number, number>();

  /** Whether there was one; the caller that took it gives it back. */
  take(owner: TestOwner): boolean {
    const { organizationId, endpointId } = owner;
    const own = this.#ofOwner.get(organizationId) ?? 0;
    const isFull = this.#endpoints.size >= SIGNER_LIMITS.testsAtOnce || own >= SIGNER_LIMITS.testsAtOncePerOwner;
    if (isFull || this.#endpoints.has(endpointId)) return false;
    this.#endpoints.add(endpointId);
    this.#ofOwner.set(organizationId, own + 1);
    return true;
  }

  give({ organizationId, endpointId }: TestOwner): void {
    this.#endpoints.delete(endpointId);
    const left = (this.#ofOwner.get(organizationId) ?? 1) - 1;
    if (left === 0) this.#ofOwner.delete(organizationId);
    else this.#ofOwner.set(organizationId, left);
  }
}

interface TestOwner {
  readonly organizationId: number;
  readonly endpointId: number;
}
