/**
 * The hosts' records of one group of partitions: one record per host, renewed as a whole, with the partitions that it holds.
 *
 * Each host alone writes its record, and only in place of the one that it wrote last. A host that is silent for too long is
 * removed by another one: its record is replaced by an empty one, under the condition that it was not renewed meanwhile. So
 * a host knows by its next renewal whether it was removed, and one that was not has kept all that it holds, however long it
 * could not renew.
 *
 * A host's silence is measured by this host's own renewals as they come back, and by no clock but its own: a record that was
 * stored before one of them would have come first. Time in which nothing could be stored is no silence, so that an election
 * makes no host count as dead.
 */
import { headers, type MsgHdrs } from "nats";
import { z } from "zod";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import type { Bus } from "../bus/connection.ts";
import { type Feed, type FeedMessage, openFeed } from "../bus/feed.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";

/** Where the records of a group of partitions are stored. */
export interface LeasePlace {
  readonly stream: string;
  /** A host's record has this subject, with the host's id behind it. */
  readonly prefix: string;
  /**
   * How long after its removal a host's record is taken away: a frozen host may find its own removal until then. Undefined
   * where the stream takes away what is old.
   */
  readonly removedForMs?: number;
}

const recordSchema = z.object({
  /** One bit per partition, in hex. */
  holds: z.string().regex(/^[0-9a-f]{64}$/),
  /** A host that is ending holds on to what it has until it has finished it, and gets nothing more. */
  isLeaving: z.boolean(),
  /** Counts the host's records. */
  count: z.number(),
});

export interface HostRecord {
  readonly hostId: string;
  readonly holds: ReadonlySet<number>;
  readonly isLeaving: boolean;
  readonly sequence: number;
  readonly storedAtMs: number;
  /** What the board's measure of silence was when the record came. */
  readonly fromMs: number;
}

interface OwnRecord {
  readonly holds: ReadonlySet<number>;
  readonly isLeaving: boolean;
}

/** JetStream's error for a condition that does not hold: the record is not the one that was written last. */
const WRONG_LAST_SEQUENCE = 10071;
/** JetStream's error for a subject without a message. */
const NO_MESSAGE = 10037;

interface LeaseAnswer {
  readonly seq?: number;
  readonly message?: { readonly seq: number; readonly data?: string };
  readonly error?: { readonly err_code?: number; readonly description?: string };
}

export class LeaseBoard {
  readonly #bus: Bus;
  readonly #log: Log;
  readonly #place: LeasePlace;
  readonly #hostId: string;
  readonly #feed: Feed;
  readonly #others = new Map<string, HostRecord>();
  readonly #removing = new Set<string>();
  /** When each host was removed, by the server's clock. */
  readonly #removed = new Map<string, number>();
  /** When each renewal was sent, by its count, until it has come back. */
  readonly #sent = new Map<number, number>();
  #count = 0;
  /** The newest own record that has come back. */
  #seenCount = 0;
  #seenSentAtMs = Number.NEGATIVE_INFINITY;
  /** The sequence of the own record that was written last: what the next one takes the place of. */
  #ownSequence = 0;
  /** Time that has passed between own renewals, all of which have come back. */
  #measuredMs = 0;

  constructor(deps: {
    readonly bus: Bus;
    readonly log: Log;
    readonly place: LeasePlace;
    readonly hostId: string;
    readonly onChange: () => void;
  }) {
    this.#bus = deps.bus;
    this.#log = deps.log;
    this.#place = deps.place;
    this.#hostId = deps.hostId;
    this.#feed = openFeed(deps.bus, {
      stream: deps.place.stream,
      filter: `${deps.place.prefix}>`,
      onMessage: (message) => {
        this.#receive(message);
        deps.onChange();
      },
      onReset: () => {
        this.#others.clear();
        this.#seenCount = 0;
        this.#seenSentAtMs = Number.NEGATIVE_INFINITY;
      },
      log: deps.log,
    });
  }

  /** Resolves when every record that is there has been read. */
  get ready(): Promise<void> {
    return this.#feed.caughtUp;
  }

  /** The records of all other hosts; one that is dead is among them until it is removed. */
  others(): readonly HostRecord[] {
    return [...this.#others.values()];
  }

  /** The count of the newest own record that has come back; zero when none has. All that was stored before it is known. */
  seenCount(): number {
    return this.#seenCount;
  }

  /** When that record was sent. */
  seenSentAtMs(): number {
    return this.#seenSentAtMs;
  }

  /** The count of the record that was written last. */
  sentCount(): number {
    return this.#count;
  }

  /** Whether another host is late: renewals then have to come more often, so that its silence is measured more closely. */
  hasLateHost(): boolean {
    return this.others().some((record) => this.#silenceOf(record) >= STATION_LIMITS.lateMs);
  }

  /** Removes hosts that have been silent for too long, unless they renew at this moment. */
  removeSilent(): void {
    for (const record of this.others()) {
      if (this.#silenceOf(record) < STATION_LIMITS.takeOverMs || this.#removing.has(record.hostId)) continue;
      this.#removing.add(record.hostId);
      void this.#remove(record);
    }
  }

  /** Whether a host that has been silent for too long is being removed. */
  isRemoving(): boolean {
    return this.#removing.size > 0;
  }

  /**
   * Writes this host's record. `removed`: another host has removed the one before, and may hold what this host held. Rejects
   * when the server does not acknowledge the record in time; it may be stored all the same.
   */
  async renew({ holds, isLeaving }: OwnRecord): Promise<"renewed" | "removed"> {
    this.#count += 1;
    const count = this.#count;
    this.#sent.set(count, performance.now());
    const body = JSON.stringify({ holds: encodePartitions(holds), isLeaving, count });
    const { seq, error } = await this.#write(this.#hostId, body, this.#ownSequence);
    if (error === undefined && seq !== undefined) {
      this.#ownSequence = Math.max(this.#ownSequence, seq);
      return "renewed";
    }
    if (error?.err_code !== WRONG_LAST_SEQUENCE) throw new Error(`The lease was not written: ${error?.description}.`);
    const last = await this.#readOwn();
    this.#ownSequence = last.sequence;
    if (last.isRemoved) return "removed";
    throw new Error("The lease before was stored late.");
  }

  /** Removes this host's record, so that the others need not wait for it to grow old. */
  async leave(): Promise<void> {
    const { error } = await this.#write(this.#hostId, "");
    if (error !== undefined) throw new Error(`The lease could not be removed: ${error.description}.`);
  }

  stop(): void {
    this.#feed.stop();
  }

  #silenceOf({ fromMs }: HostRecord): number {
    return this.#measuredMs - fromMs;
  }

  async #remove({ hostId, sequence, holds }: HostRecord): Promise<void> {
    try {
      const { error } = await this.#write(hostId, "", sequence);
      if (error !== undefined) return;
      if (this.#others.get(hostId)?.sequence === sequence) this.#others.delete(hostId);
      this.#log.warn({ hostId, count: holds.size }, "a host is silent; its partitions are free");
    } catch (error) {
      this.#log.warn({ err: error, hostId }, "a host is silent, and could not be removed yet");
    } finally {
      this.#removing.delete(hostId);
    }
  }

  /** Takes away what hosts have left that ended long ago: no host is waiting to learn of it. */
  async #clearAway(nowMs: number): Promise<void> {
    const { stream, prefix, removedForMs = Number.POSITIVE_INFINITY } = this.#place;
    try {
      for (const [hostId, removedAtMs] of this.#removed) {
        if (removedAtMs > nowMs - removedForMs) continue;
        await this.#bus.jsm.streams.purge(stream, { filter: `${prefix}${hostId}` });
        this.#removed.delete(hostId);
      }
    } catch (error) {
      this.#log.warn({ err: error }, "leases of hosts that have ended could not be taken away; the next host tries it");
    }
  }

  async #write(hostId: string, body: string, expectedSequence?: number): Promise<LeaseAnswer> {
    const conditions: MsgHdrs = headers();
    if (expectedSequence !== undefined) conditions.set("Nats-Expected-Last-Subject-Sequence", String(expectedSequence));
    if (body === "") conditions.set("KV-Operation", "DEL");
    const answer = await this.#bus.nc.request(`${this.#place.prefix}${hostId}`, body, {
      timeout: STATION_LIMITS.renewTimeoutMs,
      headers: conditions,
    });
    return answer.json<LeaseAnswer>();
  }

  /** The own record as the stream's leader has it. */
  async #readOwn(): Promise<{ readonly sequence: number; readonly isRemoved: boolean }> {
    const request = JSON.stringify({ last_by_subj: `${this.#place.prefix}${this.#hostId}` });
    const subject = `$JS.API.STREAM.MSG.GET.${this.#place.stream}`;
    const answer = await this.#bus.nc.request(subject, request, { timeout: STATION_LIMITS.renewTimeoutMs });
    const { message, error } = answer.json<LeaseAnswer>();
    if (error?.err_code === NO_MESSAGE) return { sequence: 0, isRemoved: true };
    if (message === undefined) throw new Error(`The lease could not be read: ${error?.description}.`);
    return { sequence: message.seq, isRemoved: (message.data ?? "") === "" };
  }

  #receive({ subject, data, sequence, storedAtMs }: FeedMessage): void {
    const hostId = subject.slice(this.#place.prefix.length);
    if (data.length === 0) {
      this.#others.delete(hostId);
      this.#removed.set(hostId, storedAtMs);
      return;
    }
    const parsed = recordSchema.safeParse(JSON.parse(Buffer.from(data).toString()));
    if (!parsed.success) {
      this.#log.warn({ hostId }, "a lease was not understood");
      return;
    }
    const { holds, isLeaving, count } = parsed.data;
    if (hostId === this.#hostId) return this.#receiveOwn(count, storedAtMs);
    const fromMs = this.#measuredMs;
    this.#others.set(hostId, {
      hostId,
      holds: decodePartitions(holds),
      isLeaving,
      sequence,
      storedAtMs,
      fromMs,
    });
  }

  #receiveOwn(count: number, storedAtMs: number): void {
    const sentAtMs = this.#sent.get(count);
    if (sentAtMs === undefined || count <= this.#seenCount) return;
    if (this.#seenSentAtMs > 0) {
      this.#measuredMs += Math.min(sentAtMs - this.#seenSentAtMs, STATION_LIMITS.countedGapMs);
    } else {
      this.#measureBefore(storedAtMs);
      void this.#clearAway(storedAtMs);
    }
    this.#seenCount = count;
    this.#seenSentAtMs = sentAtMs;
    for (const older of this.#sent.keys()) if (older <= count) this.#sent.delete(older);
  }

  /**
   * The first own record: of the silence before it only the server's clock knows. Hosts that were silent for very long are
   * dead, the others have to be silent for one renewal more.
   */
  #measureBefore(storedAtMs: number): void {
    const { forgottenMs, takeOverMs, renewMs } = STATION_LIMITS;
    for (const record of this.others()) {
      const silentMs = Math.max(0, storedAtMs - record.storedAtMs);
      const countedMs = silentMs >= forgottenMs ? takeOverMs : Math.min(silentMs, takeOverMs - renewMs);
      this.#others.set(record.hostId, { ...record, fromMs: this.#measuredMs - countedMs });
    }
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
