/** The addresses of this machine: a public one of them leads back to the service itself. */
import { networkInterfaces } from "node:os";
import { canonicalAddress } from "./address-rule.ts";

/** Tells of an address whether a network interface of this machine has it, or had within the last `goodForMs`. */
export function createOwnAddresses(goodForMs: number): (address: string) => boolean {
  let own: ReadonlySet<string | undefined> = new Set();
  let readAt = Number.NEGATIVE_INFINITY;
  return (address) => {
    const now = performance.now();
    if (now - readAt > goodForMs) {
      own = new Set(
        Object.values(networkInterfaces()).flatMap((each) => each?.map((one) => canonicalAddress(one.address))),
      );
      readAt = now;
    }
    return own.has(canonicalAddress(address));
  };
}
