/**
 * A bounded number of slots. Some are kept for endpoints whose target answered promptly the last time, and some for those
 * whose target has not answered yet, so that neither waits for slow targets. A caller that finds no slot is called when one
 * is free: prompt ones first, then untried, then slow, and within each in the order of the requests.
 */
import { SIGNER_LIMITS } from "../limits.ts";

/**
 * How the target answered the last time. `prompt`: a success within `promptMs`. `untried`: no answer yet, or its
 * breaker is open. `slow`: anything else.
 */
export type Pace = "prompt" | "untried" | "slow";

/** The order in which waiting callers are called. */
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

  /** Whether a slot is free that is not kept for another pace. */
  hasRoom(pace: Pace): boolean {
    let keptForOthers = 0;
    for (const other of PACES) {
      if (other !== pace) keptForOthers += Math.max(0, this.#kept[other] - this.#taken[other]);
    }
    return this.#free > keptForOthers;
  }

  /** Takes a slot and returns true. Without a free slot it returns false, and calls `onFree` once when there may be one. */
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

  /** Releases a slot that was taken at this pace. */
  release(pace: Pace): void {
    this.#free += 1;
    this.#taken[pace] -= 1;
    for (const waiting of PACES) this.#call(waiting);
  }

  forget(onFree: () => void): void {
    for (const pace of PACES) this.#waiting[pace].delete(onFree);
  }

  /** Calls one after another, because the first may no longer need the slot. */
  #call(pace: Pace): void {
    const waiting = this.#waiting[pace];
    for (const onFree of waiting) {
      if (!this.hasRoom(pace)) return;
      waiting.delete(onFree);
      onFree();
    }
  }
}

interface SlotsShape {
  readonly count: number;
  readonly keptForPrompt: number;
  readonly keptForUntried: number;
}

/** Slots for owners' tests under way in this process: one for each endpoint, and a few for each owner. */
export class TestSlots {
  readonly #endpoints = new Set<number>();
  readonly #ofOwner = new Map<number, number>();

  /** Takes a slot and returns true, or returns false. The caller releases the slot. */
  take(owner: TestOwner): boolean {
    const { organizationId, endpointId } = owner;
    const taken = this.#ofOwner.get(organizationId) ?? 0;
    const isFull = this.#endpoints.size >= SIGNER_LIMITS.testsAtOnce || taken >= SIGNER_LIMITS.testsAtOncePerOwner;
    if (isFull || this.#endpoints.has(endpointId)) return false;
    this.#endpoints.add(endpointId);
    this.#ofOwner.set(organizationId, taken + 1);
    return true;
  }

  release({ organizationId, endpointId }: TestOwner): void {
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
