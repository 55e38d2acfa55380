/** What this host owns, over all logs: each log has leases of its own, so that one that elects stops its own stations alone. */
import { type LeaseDeps, LogLeases, type LogPlace } from "./log-leases.ts";

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

  /** Resolves when this host takes part; what is free by then, it owns. */
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

  /** Hands everything over and leaves. */
  async stop(): Promise<void> {
    await Promise.all(this.#leases.map((leases) => leases.stop()));
  }
}
