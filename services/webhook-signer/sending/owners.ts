/**
 * Which owners this process sends for. One process at a time holds an owner's lease, so that the limits in flight hold and
 * no first attempt is made twice; whoever dies is succeeded when the lease has lapsed. A process that holds more than its
 * share gives owners back, the idle ones first.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../clock.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { forgetSigners, type OwnersShared, releaseOwners, renewOwners, takeOwners } from "../sql/owners.ts";
import { OutcomeWriter } from "./outcome-writer.ts";
import { OwnerSender, type OwnerSenderDeps } from "./owner-sender.ts";
import { Slots } from "./slots.ts";

export interface Owners {
  /** These owners may have something due: they are woken, or taken when no process holds them. */
  wake(organizationIds: readonly number[]): void;
  /** How many owners this process sends for. */
  readonly size: () => number;
  stop(): Promise<void>;
}

export interface OwnersDeps extends Omit<OwnerSenderDeps, "slots" | "inHand" | "writer" | "isLeaseValid"> {
  readonly clock: Pick<Clock, "nowMs" | "compareIfMoved">;
}

export function startOwners(deps: OwnersDeps): Owners {
  const signerId = randomUUID();
  const stopping = new AbortController();
  const { signal } = stopping;
  const senders = new Map<number, OwnerSender>();
  /** Those that are given back as soon as nothing of theirs is under way here any more. */
  const ending = new Map<number, { readonly sender: OwnerSender; readonly given: Promise<void> }>();
  const { ownerLeaseMs: leaseMs, leaseMarginMs, inFlight: count, keptForPrompt, keptForUntried } = SIGNER_LIMITS;
  let woken = Promise.withResolvers<void>();
  /** The id behind which free owners are searched for: with more of them than are taken, small ids do not always come first. */
  let takenTo = 0;
  /** When leases were last renewed, by both clocks. */
  let renewedAtMs = { steady: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };
  let restUntilMs = 0;
  /** The clock that never jumps stands still while the machine sleeps, so the other one must say so, too; set back, it prolongs nothing. */
  const leaseAgeMs = (): number => Math.max(performance.now() - renewedAtMs.steady, Date.now() - renewedAtMs.wall);
  const isLeaseValid = (): boolean => leaseAgeMs() < leaseMs - leaseMarginMs;
  const slots = new Slots({ count, keptForPrompt, keptForUntried });
  const writer = new OutcomeWriter({ ...deps, signerId });
  const using: OwnerSenderDeps = { ...deps, isLeaseValid, slots, inHand: { count: 0 }, writer };

  /** Stops and gives back, beside what else happens here: it takes as long as an attempt may take. */
  const give = (sender: OwnerSender): Promise<void> => {
    const { organizationId } = sender;
    senders.delete(organizationId);
    const given = sender
      .stop()
      .then(() => releaseOwners(deps.database, { signerId, organizationIds: [organizationId] }))
      .catch((error: unknown) =>
        deps.log.warn({ err: error }, "an owner could not be given back; its lease will lapse"),
      )
      .finally(() => ending.delete(organizationId));
    ending.set(organizationId, { sender, given });
    return given;
  };
  const renew = async (): Promise<OwnersShared> => {
    const askedAtMs = { steady: performance.now(), wall: Date.now() };
    const shared = await renewOwners(deps.database, {
      signerId,
      leaseMs,
      served: [...senders.keys(), ...ending.keys()],
    });
    renewedAtMs = askedAtMs;
    const isHeld = new Set(shared.held);
    // Another process may hold them already: nothing more is sent, and what ends now counts as its outcome allows.
    for (const { sender } of ending.values()) if (!isHeld.has(sender.organizationId)) sender.lose();
    for (const sender of senders.values()) {
      if (isHeld.has(sender.organizationId)) continue;
      sender.lose();
      void give(sender);
    }
    for (const organizationId of shared.due) senders.get(organizationId)?.wake();
    return shared;
  };
  /** Whether there may be more to take. */
  const take = async (): Promise<boolean> => {
    const limit = Math.min(SIGNER_LIMITS.ownersPerTake, SIGNER_LIMITS.owners - senders.size);
    if (limit <= 0) return false;
    const behind = takenTo;
    // What is thought to be held here is not taken: if its lease has lapsed while this process stood still, what is in hand may
    // have been sent by others, and the next renewal says so. Acquired again, perhaps by an answer that is lost, it would count as held.
    const but = [...senders.keys(), ...ending.keys()];
    const taken = await takeOwners(deps.database, { signerId, leaseMs, limit, behind, but });
    for (const organizationId of taken) senders.set(organizationId, new OwnerSender(using, organizationId));
    const isAll = taken.length < limit;
    takenTo = isAll ? 0 : Math.max(...taken);
    return !isAll || behind > 0;
  };
  const longestIdleFirst = () =>
    [...senders.values()]
      .map((sender) => ({ sender, sinceMs: sender.idleSinceMs ?? Number.POSITIVE_INFINITY }))
      // The busy ones last.
      .toSorted((a, b) => a.sinceMs - b.sinceMs);
  /** The owner to give back, the longest idle first, while this process has more than its share. */
  const surplus = ({ heldByAll, alive }: OwnersShared): OwnerSender | undefined => {
    return senders.size > Math.ceil(heldByAll / alive) ? longestIdleFirst()[0]?.sender : undefined;
  };
  const turn = async (): Promise<void> => {
    // First: after a sleep nothing is sent before a renewal, and what is sent then is to be signed with the time of then.
    await deps.clock.compareIfMoved();
    const given = surplus(await renew());
    if (given !== undefined) {
      void give(given);
      restUntilMs = performance.now() + SIGNER_LIMITS.ownerRestMs;
    }
    if (senders.size >= SIGNER_LIMITS.owners) {
      // Full: those with nothing to send make room for as many as can be taken at once, who may wait for a process.
      for (const { sender, sinceMs } of longestIdleFirst().slice(0, SIGNER_LIMITS.ownersPerTake)) {
        if (Number.isFinite(sinceMs)) void give(sender);
      }
    }
    // What was just given back to others is for them to take.
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
        if (!hasWarned && !signal.aborted) deps.log.warn({ err: error }, "owners cannot be shared now");
        hasWarned = true;
        // Without a renewal the leases belong to another process.
        if (leaseAgeMs() > leaseMs) for (const sender of senders.values()) void give(sender);
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
      for (const sender of senders.values()) void give(sender);
      const timer = setTimeout(() => {
        for (const { sender } of ending.values()) sender.cutOff();
      }, SIGNER_LIMITS.drainTimeoutMs);
      await Promise.all([...ending.values()].map(({ given }) => given));
      clearTimeout(timer);
      await forgetSigners(deps.database, signerId, SIGNER_LIMITS.deadSignerMs);
    },
  };
}
