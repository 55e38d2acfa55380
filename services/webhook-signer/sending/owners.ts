/**
 * Which owners this process sends for. One process at a time holds an owner's lease, so that the limits in flight hold and
 * no first attempt is made twice; whoever dies is succeeded when the lease has lapsed. A process that holds more than its
 * share gives owners back, the idle ones first.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { SIGNER_LIMITS } from "../limits.ts";
import {
  forgetSigners,
  freeClaimsOfOthers,
  type OwnersShared,
  releaseOwners,
  renewOwners,
  takeOwners,
} from "../sql/owner-leases.ts";
import { OwnerSender, type OwnerSenderDeps } from "./owner-sender.ts";
import { Slots } from "./slots.ts";

export interface Owners {
  /** These owners may have something due: they are woken, or taken when nobody holds them. */
  wake(organizationIds: readonly number[]): void;
  /** How many owners this process sends for. */
  readonly size: () => number;
  stop(): Promise<void>;
}

export type OwnersDeps = Omit<OwnerSenderDeps, "signerId" | "slots">;

export function startOwners(deps: OwnersDeps): Owners {
  const signerId = randomUUID();
  const stopping = new AbortController();
  const { signal } = stopping;
  const senders = new Map<number, OwnerSender>();
  const using: OwnerSenderDeps = { ...deps, signerId, slots: new Slots(SIGNER_LIMITS.inFlight) };
  const { ownerLeaseMs: leaseMs } = SIGNER_LIMITS;
  let woken = Promise.withResolvers<void>();
  let validUntilMs = 0;

  /** Stops and gives back; resolves when nothing of them is under way here. */
  const give = async (given: readonly OwnerSender[]): Promise<void> => {
    for (const sender of given) senders.delete(sender.organizationId);
    await Promise.all(given.map((sender) => sender.stop()));
    const organizationIds = given.map((sender) => sender.organizationId);
    if (organizationIds.length > 0) await releaseOwners(deps.database, { signerId, organizationIds });
  };
  const renew = async (): Promise<OwnersShared> => {
    const askedAtMs = performance.now();
    const shared = await renewOwners(deps.database, { signerId, leaseMs });
    validUntilMs = askedAtMs + leaseMs;
    const isHeld = new Set(shared.held);
    const lost = [...senders.values()].filter((sender) => !isHeld.has(sender.organizationId));
    // Another process may hold them already: claims are fenced, so what is not claimed yet stays unclaimed.
    for (const sender of lost) {
      senders.delete(sender.organizationId);
      void sender.stop();
    }
    return shared;
  };
  const take = async (): Promise<void> => {
    const limit = Math.min(SIGNER_LIMITS.ownersPerTake, SIGNER_LIMITS.owners - senders.size);
    if (limit <= 0) return;
    const taken = await takeOwners(deps.database, { signerId, leaseMs, limit });
    if (taken.length === 0) return;
    const freed = await freeClaimsOfOthers(deps.database, { signerId, organizationIds: taken });
    if (freed > 0) deps.log.info({ freed }, "deliveries of a process that has gone are due again");
    for (const organizationId of taken) senders.set(organizationId, new OwnerSender(using, organizationId));
  };
  /** Owners to give back: one at a time while this process has more than its share, the longest idle first. */
  const surplus = ({ heldByAll, alive }: OwnersShared): readonly OwnerSender[] => {
    const share = Math.ceil(heldByAll / alive);
    if (senders.size <= share) return [];
    return [...senders.values()].toSorted((a, b) => idleSince(a) - idleSince(b)).slice(0, 1);
  };
  const turn = async (): Promise<void> => {
    const shared = await renew();
    const given = surplus(shared);
    await give(given);
    // What was just given back is for others to take.
    if (given.length === 0) await take();
  };
  const run = async (): Promise<void> => {
    let isTold = false;
    while (!signal.aborted) {
      woken = Promise.withResolvers<void>();
      try {
        await turn();
        isTold = false;
      } catch (error) {
        if (!isTold && !signal.aborted) deps.log.warn({ err: error }, "owners cannot be shared now");
        isTold = true;
        // Without a renewal the leases are somebody else's: nothing more is started.
        if (performance.now() > validUntilMs) for (const sender of senders.values()) void sender.stop();
        if (performance.now() > validUntilMs) senders.clear();
      }
      await delay(SIGNER_LIMITS.shortestOwnerTurnMs);
      const pausing = delay(SIGNER_LIMITS.ownerTurnMs, undefined, { signal }).catch(() => undefined);
      await Promise.race([pausing, woken.promise]);
    }
  };
  const running = run();
  return {
    wake(organizationIds) {
      for (const organizationId of organizationIds) {
        const sender = senders.get(organizationId);
        if (sender === undefined) woken.resolve();
        else sender.wake();
      }
    },
    size: () => senders.size,
    async stop() {
      stopping.abort();
      await running;
      await give([...senders.values()]);
      await forgetSigners(deps.database, signerId, SIGNER_LIMITS.deadSignerMs);
    },
  };
}

/** The busy ones last. */
const idleSince = ({ idleSinceMs }: OwnerSender): number => idleSinceMs ?? Number.POSITIVE_INFINITY;
