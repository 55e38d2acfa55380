/**
 * The hosts' records in the bucket LEASES: one per host, renewed as a whole, saying which partitions it holds.
 *
 * Age is read off the bucket itself: a record is as old as the newest record of anybody is younger, both by the server's
 * clock. A host that was asleep, or whose feed was stuck, therefore never takes others for dead.
 */
import { headers } from "nats";
import { z } from "zod";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import type { Bus } from "../bus/connection.ts";
import { type Feed, type FeedMessage, openFeed } from "../bus/feed.ts";
import { LEASES } from "../bus/streams.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";

const PREFIX = `$KV.${LEASES.name}.host.`;

const recordSchema = z.object({
  /** One bit per partition, in hex. */
  holds: z.string().regex(/^[0-9a-f]{64}$/),
  /** A host that is ending holds on to what it has until it has finished it, and gets nothing more. */
  isLeaving: z.boolean(),
});

export interface HostRecord {
  readonly hostId: string;
  readonly holds: ReadonlySet<number>;
  readonly isLeaving: boolean;
  readonly storedAtMs: number;
}

export class LeaseBoard {
  readonly #bus: Bus;
  readonly #log: Log;
  readonly #feed: Feed;
  readonly #records = new Map<string, HostRecord>();
  #newestAtMs = 0;

  constructor(deps: { readonly bus: Bus; readonly log: Log; readonly onChange: () => void }) {
    this.#bus = deps.bus;
    this.#log = deps.log;
    this.#feed = openFeed(deps.bus, {
      stream: `KV_${LEASES.name}`,
      filter: `${PREFIX}>`,
      keepsOnlyNewest: true,
      onMessage: (message) => {
        this.#receive(message);
        deps.onChange();
      },
      onReset: () => {
        this.#records.clear();
        this.#newestAtMs = 0;
      },
      log: deps.log,
    });
  }

  /** Resolves when every record that is there has been read. */
  get ready(): Promise<void> {
    return this.#feed.caughtUp;
  }

  /** Hosts whose record is young enough, the leaving ones among them. */
  live(): readonly HostRecord[] {
    return [...this.#records.values()].filter(
      (record) => this.#newestAtMs - record.storedAtMs < STATION_LIMITS.takeOverMs,
    );
  }

  /** Whether this host's record has come back on the feed; from then on the ages of all others are known. */
  knows(hostId: string): boolean {
    return this.#records.has(hostId);
  }

  /** Whether another host is late: the time of the bucket then has to go on, or nobody would see it grow old. */
  misses(hostId: string): boolean {
    for (const record of this.#records.values()) {
      const ageMs = this.#newestAtMs - record.storedAtMs;
      if (record.hostId !== hostId && ageMs >= STATION_LIMITS.lateMs && ageMs < STATION_LIMITS.takeOverMs) return true;
    }
    return false;
  }

  /** Writes this host's record; rejects when the server does not acknowledge it in time. */
  async renew(
    hostId: string,
    record: { readonly holds: ReadonlySet<number>; readonly isLeaving: boolean },
  ): Promise<void> {
    const body = JSON.stringify({ holds: encodePartitions(record.holds), isLeaving: record.isLeaving });
    await this.#write(hostId, body);
  }

  /** Removes this host's record, so that the others need not wait for it to grow old. */
  async remove(hostId: string): Promise<void> {
    const purge = headers();
    purge.set("KV-Operation", "PURGE");
    purge.set("Nats-Rollup", "sub");
    await this.#write(hostId, "", purge);
  }

  stop(): void {
    this.#feed.stop();
  }

  async #write(hostId: string, body: string, purge?: ReturnType<typeof headers>): Promise<void> {
    const answer = await this.#bus.nc.request(`${PREFIX}${hostId}`, body, {
      timeout: STATION_LIMITS.renewTimeoutMs,
      ...(purge === undefined ? {} : { headers: purge }),
    });
    const { error } = answer.json<{ readonly error?: { readonly description?: string } }>();
    if (error !== undefined) throw new Error(`The lease could not be written: ${error.description}.`);
  }

  #receive(message: FeedMessage): void {
    const hostId = message.subject.slice(PREFIX.length);
    this.#newestAtMs = Math.max(this.#newestAtMs, message.storedAtMs);
    if (message.data.length === 0) {
      this.#records.delete(hostId);
      return;
    }
    const parsed = recordSchema.safeParse(JSON.parse(Buffer.from(message.data).toString()));
    if (!parsed.success) {
      this.#log.warn({ hostId }, "a lease was not understood");
      return;
    }
    const { holds, isLeaving } = parsed.data;
    this.#records.set(hostId, { hostId, holds: decodePartitions(holds), isLeaving, storedAtMs: message.storedAtMs });
  }
}

function encodePartitions(partitions: ReadonlySet<number>): string {
  const bits = Buffer.alloc(PARTITION_COUNT / 8);
  for (const partition of partitions) bits[partition >> 3] = (bits[partition >> 3] ?? 0) | (1 << (partition & 7));
  return bits.toString("hex");
}

function decodePartitions(text: string): ReadonlySet<number> {
  const bits = Buffer.from(text, "hex");
  const partitions = new Set<number>();
  for (let partition = 0; partition < PARTITION_COUNT; partition += 1) {
    if (((bits[partition >> 3] ?? 0) & (1 << (partition & 7))) !== 0) partitions.add(partition);
  }
  return partitions;
}
