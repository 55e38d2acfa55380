/**
 * Selects the owners for which this process sends. One process at a time holds an owner's lease, so that the limits of
 * attempts in flight apply and no process repeats a first attempt. When a process dies, other processes take its owners
 * after their leases have lapsed. A process that holds more than its share releases owners, the idle ones first.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { failuresOf } from "../../bus/outage.ts";
import type { Clock } from "../clock.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { deleteSigners, type OwnersRenewed, releaseOwners, renewOwners, takeOwners } from "../sql/owners.ts";
import { OutcomeWriter } from "./outcome-writer.ts";
import { OwnerSender, type OwnerSenderDeps } from "./owner-sender.ts";
import { Slots } from "./slots.ts";

export interface Owners {
  /** Wakes the senders of these owners. Searches for free owners when an owner has no sender here. */
  wake(organizationIds: readonly number[]): void;
  readonly size: () => number;
  stop(): Promise<void>;
}

interface OwnersDeps extends Omit<OwnerSenderDeps, "slots" | "inHand" | "writer" | "isLeaseValid"> {
  readonly clock: Pick<Clock, "nowMs" | "compareIfMoved">;
}

export function startOwners(deps: OwnersDeps): Owners {
  const signerId = randomUUID();
  const stopping = new AbortController();
  const { signal } = stopping;
  const senders = new Map<number, OwnerSender>();
  /** Owners whose leases are released as soon as this process has no attempt of theirs under way. */
  const ending = new Map<number, { readonly sender: OwnerSender; readonly released: Promise<void> }>();
  const { ownerLeaseMs: leaseMs, leaseMarginMs, inFlight: count, keptForPrompt, keptForUntried } = SIGNER_LIMITS;
  let woken = Promise.withResolvers<void>();
  /** The next search for free owners begins after this id, so that small ids do not always come first. */
  let searchedToId = 0;
  /** When leases were last renewed, by both clocks. */
  let renewedAtMs = { steady: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };
  let restUntilMs = 0;
  /** By the clock that shows more: the steady clock stops while the machine sleeps, and the wall clock may be set back. */
  const leaseAgeMs = (): number => Math.max(performance.now() - renewedAtMs.steady, Date.now() - renewedAtMs.wall);
  const isLeaseValid = (): boolean => leaseAgeMs() < leaseMs - leaseMarginMs;
  const slots = new Slots({ count, keptForPrompt, keptForUntried });
  const writer = new OutcomeWriter({ ...deps, signerId });
  const using: OwnerSenderDeps = { ...deps, isLeaseValid, slots, inHand: { count: 0 }, writer };

  const unreleased = failuresOf(deps.log, "releasing an owner failed; its lease will lapse");
  /** Stops the sender and releases its owner. Callers do not wait for it: it may take as long as an attempt. */
  const release = (sender: OwnerSender): Promise<void> => {
    const { organizationId } = sender;
    senders.delete(organizationId);
    const released = sender
      .stop()
      .then(() => releaseOwners(deps.database, { signerId, organizationIds: [organizationId] }))
      .catch((error: unknown) => unreleased.failed(error, { organizationId }))
      .finally(() => ending.delete(organizationId));
    ending.set(organizationId, { sender, released });
    return released;
  };
  const renew = async (): Promise<OwnersRenewed> => {
    const askedAtMs = { steady: performance.now(), wall: Date.now() };
    const renewed = await renewOwners(deps.database, {
      signerId,
      leaseMs,
      served: [...senders.keys(), ...ending.keys()],
    });
    renewedAtMs = askedAtMs;
    const isHeld = new Set(renewed.held);
    // Another process may already hold these owners, so their senders send nothing more.
    for (const { sender } of ending.values()) if (!isHeld.has(sender.organizationId)) sender.lose();
    for (const sender of senders.values()) {
      if (isHeld.has(sender.organizationId)) continue;
      sender.lose();
      void release(sender);
    }
    for (const organizationId of renewed.due) senders.get(organizationId)?.wake();
    return renewed;
  };
  /** Takes free owners; returns whether there may be more of them. */
  const take = async (): Promise<boolean> => {
    const limit = Math.min(SIGNER_LIMITS.ownersPerTake, SIGNER_LIMITS.owners - senders.size);
    if (limit <= 0) return false;
    const afterId = searchedToId;
    // Owners that have a sender here are not taken. Their leases may have lapsed while this process was stalled, and another
    // process may have sent what this one holds. The next renewal finds that; a new lease would hide it.
    const except = [...senders.keys(), ...ending.keys()];
    const taken = await takeOwners(deps.database, { signerId, leaseMs, limit, afterId, except });
    for (const organizationId of taken) senders.set(organizationId, new OwnerSender(using, organizationId));
    const isAll = taken.length < limit;
    searchedToId = isAll ? 0 : Math.max(...taken);
    return !isAll || afterId > 0;
  };
  const longestIdleFirst = () =>
    [...senders.values()]
      .map((sender) => ({ sender, sinceMs: sender.idleSinceMs ?? Number.POSITIVE_INFINITY }))
      // Busy senders are last.
      .toSorted((a, b) => a.sinceMs - b.sinceMs);
  /** The sender to release when this process has more than its share: the one that is idle for the longest time. */
  const surplus = ({ heldByAll, alive }: OwnersRenewed): OwnerSender | undefined => {
    return senders.size > Math.ceil(heldByAll / alive) ? longestIdleFirst()[0]?.sender : undefined;
  };
  const turn = async (): Promise<void> => {
    // The clock comes first: after the machine slept, the requests that follow the renewal need the right time in their
    // signatures.
    await deps.clock.compareIfMoved();
    const extra = surplus(await renew());
    if (extra !== undefined) {
      void release(extra);
      restUntilMs = performance.now() + SIGNER_LIMITS.ownerRestMs;
    }
    if (senders.size >= SIGNER_LIMITS.owners) {
      // At the limit idle owners are released, as many as one search can take, because other owners may wait for a process.
      for (const { sender, sinceMs } of longestIdleFirst().slice(0, SIGNER_LIMITS.ownersPerTake)) {
        if (Number.isFinite(sinceMs)) void release(sender);
      }
    }
    // After a release this process takes no owner for a moment, so that another process takes the released one.
    if (performance.now() >= restUntilMs && (await take())) woken.resolve();
  };
  const run = async (): Promise<void> => {
    let hasWarned = false;
    while (!signal.aborted) {
      woken = Promise.withResolvers<void>();
      try {
        await turn();
        hasWarned = false;
      } catch (error) {
        if (!hasWarned && !signal.aborted)
          deps.log.warn({ err: error }, "renewing and taking leases of owners failed; the next turn tries again");
        hasWarned = true;
        // Without a renewal the leases have lapsed, and another process may hold them.
        if (leaseAgeMs() > leaseMs) for (const sender of senders.values()) void release(sender);
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
      for (const sender of senders.values()) void release(sender);
      const timer = setTimeout(() => {
        for (const { sender } of ending.values()) sender.cutOff();
      }, SIGNER_LIMITS.drainTimeoutMs);
      await Promise.all([...ending.values()].map(({ released }) => released));
      clearTimeout(timer);
      await deleteSigners(deps.database, signerId, SIGNER_LIMITS.deadSignerMs);
    },
  };
}
