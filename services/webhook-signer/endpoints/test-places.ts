/** Places for owners' tests under way in this process: one endpoint, and one owner, take only so many of them. */
import { SIGNER_LIMITS } from "../limits.ts";

export class TestPlaces {
  readonly #endpoints = new Set<number>();
  readonly #ofOwner = new Map<number, number>();

  /** Whether there was one; whoever took it gives it back. */
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
