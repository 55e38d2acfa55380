/**
 * Which partitions this host owns (design §2.3). Ownership only decides which host answers; the conditional append decides
 * which commit is stored. Each log has separate leases, so that an election in one log stops only the stations of that log.
 *
 *   assigned to this host, held by no host ──► claim: write it into the own record
 *        claim has come back, no other host has claimed it before ──► acquire
 *   held, assigned to another host ──► finish, then release
 *   own record not acknowledged for 1.5 s ──► answer `unavailable`, hold everything
 *        acknowledged again ──► go on          removed by another host meanwhile ──► drop everything
 *   SIGTERM ──► finish, release everything, remove the record
 */
import { PARTITION_COUNT } from "../../machines/partition.ts";
import type { Bus } from "../bus/connection.ts";
import { every } from "../runtime/every.ts";
import type { Log } from "../runtime/log.ts";
import { LeaseBoard, type LeasePlace } from "./lease-board.ts";
import { STATION_LIMITS } from "./limits.ts";

interface LeaseDeps {
  readonly bus: Bus;
  readonly log: Log;
  readonly hostId: string;
  /** Whether commands can reach this host; a host that cannot serve must not keep its lease. */
  readonly canServe: () => boolean;
  /** Starts serving these partitions. */
  readonly acquire: (partitions: readonly number[]) => void;
  /** Stops serving them; resolves when what was begun is finished, within `handOverMs`. */
  readonly release: (partitions: readonly number[]) => Promise<void>;
  /** Stops serving them at once: another host may do so already. */
  readonly drop: (partitions: readonly number[]) => void;
  /** Takes no more commands for them, because another host may take them over soon; or takes them again. */
  readonly setListening: (partitions: readonly number[], isListening: boolean) => void;
}

export interface LogPlace extends LeasePlace {
  readonly partitions: readonly number[];
}

export class LogLeases {
  readonly #deps: LeaseDeps;
  readonly #place: LogPlace;
  readonly #board: LeaseBoard;
  readonly #held = new Set<number>();
  readonly #releasing = new Set<number>();
  /** Claims, with the count of the record that contains them first. */
  readonly #claims = new Map<number, number>();
  readonly #stopChecks: (() => void)[] = [];
  readonly #stopListening: () => void;
  /** When the newest acknowledged renewal was sent, by this host's monotonic clock. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** After a lapse: the renewal that must come back before this host serves again, because it must know what others did. */
  #mustSeeSentAt = Number.NEGATIVE_INFINITY;
  #isStarted = false;
  #isListening = true;
  #hasWarned = false;
  #mustRenewAgain = false;
  /** When the newest renewal was sent. */
  #sentAt = Number.NEGATIVE_INFINITY;
  #isLeaving = false;

  constructor(place: LogPlace, deps: LeaseDeps) {
    this.#deps = deps;
    this.#place = place;
    const { bus, log, hostId } = deps;
    this.#board = new LeaseBoard({ bus, log, hostId, place, onChange: () => this.#review() });
    this.#stopListening = deps.bus.onChange((isUp) => {
      if (isUp) this.#renew();
    });
  }

  /** Resolves when this host takes part and owns the partitions that were free, or after twice `renewAgainMs`. */
  async start(): Promise<void> {
    await this.#board.ready;
    this.#isStarted = true;
    this.#stopChecks.push(every(STATION_LIMITS.renewMs, () => this.#renew()));
    this.#stopChecks.push(every(STATION_LIMITS.reviewMs, () => this.#review()));
    this.#renew();
    const deadline = performance.now() + 2 * STATION_LIMITS.renewAgainMs;
    while (performance.now() < deadline) {
      if (this.#board.seenCount() > 0) {
        this.#review();
        if (this.#claims.size === 0 && !this.#board.isRemoving()) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** Whether this host may act for the partitions it holds. Cheap: asked with every command. */
  isCurrent(): boolean {
    return (
      performance.now() - this.#renewedAt < STATION_LIMITS.selfStopMs &&
      this.#board.seenSentAtMs() >= this.#mustSeeSentAt
    );
  }

  get stream(): string {
    return this.#place.stream;
  }

  /** How long ago the newest renewal was sent that the log has acknowledged. */
  renewalAgeMs(): number {
    return performance.now() - this.#renewedAt;
  }

  /** What this host and the others hold together. */
  heldByAnyHost(): ReadonlySet<number> {
    return new Set([...this.#held, ...this.#heldByOthers()]);
  }

  /** Hands over all partitions and removes the record. */
  async stop(): Promise<void> {
    this.#isLeaving = true;
    this.#stopListening();
    for (const stop of this.#stopChecks) stop();
    this.#claims.clear();
    await this.#deps.release([...this.#held]);
    this.#held.clear();
    // A renewal that is still under way is not stored after this: it replaces another record.
    await this.#board.leave().catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, "the lease could not be removed; other hosts take over when it is too old");
    });
    this.#board.stop();
  }

  #heldByOthers(): Set<number> {
    return new Set(this.#board.others().flatMap((record) => [...record.holds]));
  }

  #review(): void {
    if (!this.#isStarted || this.#isLeaving) return;
    if (this.#mustRenewAgain) this.#renew();
    if (!this.isCurrent()) return this.#wait();
    this.#listen(true);
    this.#board.removeSilent();
    if (this.#board.hasLateHost() && performance.now() - this.#renewedAt >= STATION_LIMITS.reviewMs) this.#renew();
    this.#settleClaims();
    const { hostId } = this.#deps;
    const others = this.#board.others();
    const candidates = others.filter((record) => !record.isLeaving).map((record) => record.hostId);
    const owners = assignPartitions([...candidates, hostId]);
    const heldByOthers = this.#heldByOthers();
    const released: number[] = [];
    let hasClaimed = false;
    for (const partition of this.#place.partitions) {
      const isWanted = owners[partition] === hostId;
      const isHeld = this.#held.has(partition);
      if (isWanted && !isHeld && !this.#claims.has(partition) && !heldByOthers.has(partition)) {
        this.#claims.set(partition, this.#board.sentCount() + 1);
        hasClaimed = true;
      }
      if (!isWanted && isHeld && !this.#releasing.has(partition)) released.push(partition);
    }
    if (hasClaimed) this.#renew();
    if (released.length > 0) void this.#release(released);
  }

  /**
   * A claim that has come back is decided: the host knows the claims that were stored before it, and the first one counts.
   * A renewal that was under way when the claim was made does not contain it; the next one does.
   */
  #settleClaims(): void {
    const heldByOthers = this.#heldByOthers();
    const acquired: number[] = [];
    let hasLost = false;
    for (const [partition, count] of this.#claims) {
      if (this.#board.seenCount() < count) continue;
      this.#claims.delete(partition);
      if (heldByOthers.has(partition)) hasLost = true;
      else acquired.push(partition);
    }
    if (hasLost) this.#renew();
    if (acquired.length === 0) return;
    for (const partition of acquired) this.#held.add(partition);
    this.#deps.log.info({ count: acquired.length, held: this.#held.size }, "partitions acquired");
    this.#deps.acquire(acquired);
  }

  async #release(partitions: readonly number[]): Promise<void> {
    for (const partition of partitions) this.#releasing.add(partition);
    await this.#deps.release(partitions);
    for (const partition of partitions) {
      this.#releasing.delete(partition);
      this.#held.delete(partition);
    }
    this.#deps.log.info({ count: partitions.length, held: this.#held.size }, "partitions released");
    this.#renew();
  }

  /** The lease is not renewed. Later another host may take over, and this host's errors must not hide the other's answers. */
  #wait(): void {
    this.#renew();
    if (performance.now() - this.#renewedAt >= STATION_LIMITS.takeOverMs) this.#listen(false);
  }

  #listen(isListening: boolean): void {
    if (this.#isListening === isListening) return;
    this.#isListening = isListening;
    this.#deps.setListening([...this.#held], isListening);
  }

  /** Another host has removed this one, and may hold its partitions. */
  #dropAll(): void {
    this.#claims.clear();
    const dropped = [...this.#held].filter((partition) => !this.#releasing.has(partition));
    for (const partition of dropped) this.#held.delete(partition);
    this.#isListening = true;
    this.#deps.log.warn({ count: dropped.length }, "another host has taken over; all partitions are dropped");
    if (dropped.length > 0) this.#deps.drop(dropped);
  }

  /** Renews now, or as soon as the renewal under way is answered or late. */
  #renew(): void {
    if (!this.#deps.canServe()) return;
    this.#mustRenewAgain = this.#board.isRenewing();
    if (!this.#mustRenewAgain) void this.#renewNow();
  }

  async #renewNow(): Promise<void> {
    const sentAt = performance.now();
    this.#sentAt = sentAt;
    const holds = new Set([...this.#held, ...this.#claims.keys()]);
    try {
      const outcome = await this.#board.renew({ holds, isLeaving: this.#isLeaving });
      if (outcome === "renewed") this.#noteRenewal(sentAt);
      if (this.#isLeaving) return;
      if (outcome === "removed") this.#dropAll();
      // Of renewals that overlap, one is stored: what a later one contains has to be written again.
      const isWritten = outcome === "renewed" && this.#sentAt === sentAt;
      if (!isWritten || this.#mustRenewAgain) this.#renew();
    } catch (error) {
      if (this.#hasWarned || this.#isLeaving || sentAt < this.#renewedAt) return;
      this.#deps.log.warn({ err: error }, "the lease is not renewed; the host tries again");
      this.#hasWarned = true;
    }
  }

  /** The lease counts from the sending of the renewal, however late its acknowledgement comes. */
  #noteRenewal(sentAt: number): void {
    if (sentAt <= this.#renewedAt) return;
    if (sentAt - this.#renewedAt >= STATION_LIMITS.selfStopMs) this.#mustSeeSentAt = sentAt;
    if (this.#hasWarned) {
      const forMs = Math.round(sentAt - this.#renewedAt);
      this.#deps.log.info({ forMs, held: this.#held.size }, "the lease is renewed again");
    }
    this.#hasWarned = false;
    this.#renewedAt = sentAt;
  }
}

/** What this host owns, over all logs. */
export class Ownership {
  readonly #leases: readonly LogLeases[];
  readonly #byPartition = new Map<number, LogLeases>();

  constructor(places: readonly LogPlace[], deps: LeaseDeps) {
    this.#leases = places.map((place) => {
      const leases = new LogLeases(place, deps);
      for (const partition of place.partitions) this.#byPartition.set(partition, leases);
      return leases;
    });
  }

  /** Resolves when this host takes part and owns the partitions that were free, or after twice `renewAgainMs`. */
  async start(): Promise<void> {
    await Promise.all(this.#leases.map((leases) => leases.start()));
  }

  /** Whether this host may act for a partition, if it holds it. Cheap: asked with every command. */
  isCurrent(partition: number): boolean {
    return this.#byPartition.get(partition)?.isCurrent() ?? false;
  }

  /** The age of the lease in each log, for metrics. */
  leaseAges(): readonly { readonly log: string; readonly ageMs: number }[] {
    return this.#leases.map((leases) => ({ log: leases.stream, ageMs: leases.renewalAgeMs() }));
  }

  /** What all hosts hold together; undefined while this host does not know. */
  heldByAnyHost(): ReadonlySet<number> | undefined {
    const current = this.#leases.filter((leases) => leases.isCurrent());
    if (current.length === 0) return undefined;
    return new Set(current.flatMap((leases) => [...leases.heldByAnyHost()]));
  }

  /** Hands over all partitions and removes the record. */
  async stop(): Promise<void> {
    await Promise.all(this.#leases.map((leases) => leases.stop()));
  }
}

/**
 * The owner of each partition by rendezvous hashing: when a host starts or ends, only the partitions that it gets or had
 * change their owner. Each host computes the same from the same set of live hosts. Empty without hosts.
 */
export function assignPartitions(hostIds: readonly string[]): readonly string[] {
  const seeds = hostIds.toSorted().map((hostId) => ({ hostId, seed: hashText(hostId) }));
  if (seeds.length === 0) return [];
  return Array.from({ length: PARTITION_COUNT }, (_, partition) => {
    let owner = "";
    let highest = -1;
    for (const { hostId, seed } of seeds) {
      const weight = mix(seed ^ Math.imul(partition + 1, 0x9e3779b1));
      if (weight <= highest) continue;
      highest = weight;
      owner = hostId;
    }
    return owner;
  });
}

/** FNV-1a, 32 bits. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** The finalizer of MurmurHash3: neighbouring partitions get unrelated weights. */
function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
