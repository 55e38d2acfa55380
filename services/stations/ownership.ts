/**
 * Which partitions this host owns (design §2.3). Ownership only decides who answers; the conditional append decides what
 * is true.
 *
 *   wanted by rendezvous, held by nobody alive ──► acquire      held, wanted for another host ──► finish, then release
 *   own record not acknowledged for 1.5 s ──► drop everything   SIGTERM ──► finish, release everything, remove the record
 */

import type { Bus } from "../bus/connection.ts";
import type { Log } from "../runtime/log.ts";
import { LeaseBoard } from "./lease-board.ts";
import { STATION_LIMITS } from "./limits.ts";
import { assignPartitions } from "./rendezvous.ts";

export interface OwnershipDeps {
  readonly bus: Bus;
  readonly log: Log;
  readonly hostId: string;
  /** Whether commands can reach this host at all; a host that cannot serve must not hold on to its lease. */
  readonly canServe: () => boolean;
  /** Starts serving these partitions. */
  readonly acquire: (partitions: readonly number[]) => void;
  /** Stops serving them; resolves when what was begun is finished, within `handOverMs`. */
  readonly release: (partitions: readonly number[]) => Promise<void>;
  /** Stops serving them at once: another host may do so already. */
  readonly drop: (partitions: readonly number[]) => void;
}

export class Ownership {
  readonly #deps: OwnershipDeps;
  readonly #board: LeaseBoard;
  readonly #held = new Set<number>();
  readonly #releasing = new Set<number>();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #stopListening: () => void;
  /** When the newest acknowledged renewal was sent, by this host's monotonic clock. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  #isRenewing = false;
  #mustRenewAgain = false;
  #isLeaving = false;

  constructor(deps: OwnershipDeps) {
    this.#deps = deps;
    this.#board = new LeaseBoard({ bus: deps.bus, log: deps.log, onChange: () => this.#review() });
    this.#stopListening = deps.bus.onChange((isUp) => {
      if (isUp) void this.#renew();
    });
  }

  /** Resolves when this host takes part; what is free by then, it owns. */
  async start(): Promise<void> {
    await this.#board.ready;
    this.#timers.push(setInterval(() => void this.#renew(), STATION_LIMITS.renewMs));
    this.#timers.push(setInterval(() => this.#review(), STATION_LIMITS.reviewMs));
    await this.#renew();
    const deadline = performance.now() + STATION_LIMITS.renewTimeoutMs;
    while (!this.#board.knows(this.#deps.hostId) && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    this.#review();
  }

  /** Whether this host may act for the partitions it holds. Cheap: asked with every command. */
  isCurrent(): boolean {
    return performance.now() - this.#renewedAt < STATION_LIMITS.selfStopMs;
  }

  held(): ReadonlySet<number> {
    return this.#held;
  }

  /** What this host and the others that are alive hold together. */
  heldByAnybody(): ReadonlySet<number> {
    const others = this.#board.live().filter((record) => record.hostId !== this.#deps.hostId);
    return new Set([...this.#held, ...others.flatMap((record) => [...record.holds])]);
  }

  /** Hands everything over and leaves. */
  async stop(): Promise<void> {
    this.#isLeaving = true;
    this.#stopListening();
    for (const timer of this.#timers) clearInterval(timer);
    const held = [...this.#held];
    await this.#deps.release(held);
    this.#held.clear();
    // The record's last word must come after every renewal that is still under way.
    while (this.#isRenewing) await new Promise((resolve) => setTimeout(resolve, 1));
    await this.#board.remove(this.#deps.hostId).catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, "the lease could not be removed; others take over when it has grown old");
    });
    this.#board.stop();
  }

  #review(): void {
    if (this.#isLeaving) return;
    if (!this.isCurrent()) return this.#dropAll();
    const { hostId } = this.#deps;
    if (this.#board.misses(hostId) && performance.now() - this.#renewedAt >= STATION_LIMITS.reviewMs)
      void this.#renew();
    const others = this.#board.live().filter((record) => record.hostId !== hostId);
    const candidates = others.filter((record) => !record.isLeaving).map((record) => record.hostId);
    const owners = assignPartitions([...candidates, hostId]);
    const heldByOthers = new Set(others.flatMap((record) => [...record.holds]));
    const acquired: number[] = [];
    const released: number[] = [];
    for (const [partition, owner] of owners.entries()) {
      const isHeld = this.#held.has(partition);
      if (owner === hostId && !isHeld && !heldByOthers.has(partition)) acquired.push(partition);
      if (owner !== hostId && isHeld && !this.#releasing.has(partition)) released.push(partition);
    }
    if (acquired.length > 0) this.#acquire(acquired);
    if (released.length > 0) void this.#release(released);
  }

  #acquire(partitions: readonly number[]): void {
    for (const partition of partitions) this.#held.add(partition);
    this.#deps.log.info({ count: partitions.length, held: this.#held.size }, "partitions acquired");
    this.#deps.acquire(partitions);
    void this.#renew();
  }

  async #release(partitions: readonly number[]): Promise<void> {
    for (const partition of partitions) this.#releasing.add(partition);
    await this.#deps.release(partitions);
    for (const partition of partitions) {
      this.#releasing.delete(partition);
      this.#held.delete(partition);
    }
    this.#deps.log.info({ count: partitions.length, held: this.#held.size }, "partitions released");
    await this.#renew();
  }

  /** This host could not say that it lives: others may have taken over, so it acts for nobody. */
  #dropAll(): void {
    const dropped = [...this.#held].filter((partition) => !this.#releasing.has(partition));
    if (dropped.length === 0) return;
    this.#deps.log.warn({ count: dropped.length }, "the lease was not renewed in time; all partitions dropped");
    for (const partition of dropped) this.#held.delete(partition);
    this.#deps.drop(dropped);
  }

  async #renew(): Promise<void> {
    if (!this.#deps.canServe()) return;
    if (this.#isRenewing) {
      this.#mustRenewAgain = true;
      return;
    }
    this.#isRenewing = true;
    try {
      do {
        this.#mustRenewAgain = false;
        const sentAt = performance.now();
        await this.#board.renew(this.#deps.hostId, { holds: this.#held, isLeaving: this.#isLeaving });
        this.#renewedAt = sentAt;
      } while (this.#mustRenewAgain && !this.#isLeaving);
    } catch (error) {
      this.#deps.log.warn({ err: error }, "the lease was not renewed");
    } finally {
      this.#isRenewing = false;
    }
  }
}
