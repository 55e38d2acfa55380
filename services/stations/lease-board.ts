/**
 * The hosts' records of one group of partitions: one record per host, renewed as a whole, with the partitions that it holds.
 *
 * Only the host itself renews its record, and a renewal replaces only the record that this host wrote last. When a host is
 * silent for too long, another host removes it: that host replaces the record by an empty one, unless it was renewed
 * meanwhile. So a host learns from its next renewal whether it was removed. If not, it still holds all its partitions,
 * however long it could not renew.
 *
 * A host measures the silence of others by its clock, between its renewals as they come back: a record that was
 * stored before one of them would have come first. Time in which nothing could be stored does not count as silence, so that
 * no host counts as dead because of an election.
 *
 * Renewals may overlap: the host sends another one while an earlier one is late. Both replace the same record, so at most one
 * of them is stored, and its acknowledgement counts however late it comes.
 */
import { headers, type MsgHdrs } from "nats";
import { z } from "zod";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import type { Bus } from "../bus/connection.ts";
import { type Feed, type FeedMessage, openFeed } from "../bus/feed.ts";
import { NO_MESSAGE, WRONG_LAST_SEQUENCE } from "../bus/jetstream-codes.ts";
import { Failures } from "../bus/outage.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";

/** Where the records of a group of partitions are stored. */
export interface LeasePlace {
  readonly stream: string;
  /** A host's record has this subject, with the host's id behind it. */
  readonly prefix: string;
  /**
   * How long the record of a removed host stays, so that a stalled host can find its own removal. Undefined where the stream
   * deletes old messages itself.
   */
  readonly removedForMs?: number;
}

const recordSchema = z.object({
  /** One bit per partition, in hex. */
  holds: z.string().regex(/^[0-9a-f]{64}$/),
  /** A host that is stopping keeps its partitions until their work is finished, and gets no more. */
  isLeaving: z.boolean(),
  /** Counts the host's records. */
  count: z.number(),
});

interface HostRecord {
  readonly hostId: string;
  readonly holds: ReadonlySet<number>;
  readonly isLeaving: boolean;
  readonly sequence: number;
  readonly storedAtMs: number;
  /** The board's `#measuredMs` when the record came. */
  readonly fromMs: number;
  /** When the record came, by this host's monotonic clock: after its host has sent it. */
  readonly receivedAtMs: number;
}

interface OwnRecord {
  readonly holds: ReadonlySet<number>;
  readonly isLeaving: boolean;
}

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
  /** The count of this host's newest record that has come back. */
  #seenCount = 0;
  #seenSentAtMs = Number.NEGATIVE_INFINITY;
  /** The sequence of the record that this host wrote last, which the next one replaces. */
  #ownSequence = 0;
  /** The newest renewal, until its answer comes. */
  #waiting: { readonly replaces: number; readonly sentAtMs: number } | undefined;
  /** The sum of the times between this host's renewals that have come back, each up to `countedGapMs`. */
  #measuredMs = 0;
  readonly #removalFailures: Failures;

  constructor(deps: {
    readonly bus: Bus;
    readonly log: Log;
    readonly place: LeasePlace;
    readonly hostId: string;
    readonly onChange: () => void;
  }) {
    this.#bus = deps.bus;
    this.#log = deps.log;
    const unremoved = "a host is silent, and could not be removed yet";
    this.#removalFailures = new Failures((...line) => deps.log.warn(...line), unremoved);
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

  /** Resolves when every stored record has been read. */
  get ready(): Promise<void> {
    return this.#feed.caughtUp;
  }

  /** The records of all other hosts, also of a dead host until it is removed. */
  others(): readonly HostRecord[] {
    return [...this.#others.values()];
  }

  /** The count of this host's newest record that has come back, or zero. The board knows all that was stored before it. */
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
      if (!this.#isDead(record) || this.#removing.has(record.hostId)) continue;
      this.#removing.add(record.hostId);
      void this.#remove(record);
    }
  }

  /** Whether a host that has been silent for too long is being removed. */
  isRemoving(): boolean {
    return this.#removing.size > 0;
  }

  /** Whether a renewal that can still be stored waits for its answer, and is not late yet. */
  isRenewing(): boolean {
    if (this.#waiting === undefined || this.#waiting.replaces !== this.#ownSequence) return false;
    return performance.now() - this.#waiting.sentAtMs < STATION_LIMITS.renewAgainMs;
  }

  /**
   * Writes this host's record. `removed`: another host has removed the previous one, and may hold this host's partitions.
   * `overtaken`: an earlier renewal was stored late, so this one was not; the next one replaces that record.
   * Rejects without an acknowledgement within `selfStopMs`; the record may still be stored.
   */
  async renew({ holds, isLeaving }: OwnRecord): Promise<"renewed" | "removed" | "overtaken"> {
    this.#count += 1;
    const count = this.#count;
    const waiting = { replaces: this.#ownSequence, sentAtMs: performance.now() };
    this.#waiting = waiting;
    this.#sent.set(count, waiting.sentAtMs);
    const body = JSON.stringify({ holds: encodePartitions(holds), isLeaving, count });
    try {
      return await this.#replace(waiting.replaces, body);
    } finally {
      if (this.#waiting === waiting) this.#waiting = undefined;
    }
  }

  async #replace(sequence: number, body: string): Promise<"renewed" | "removed" | "overtaken"> {
    const { seq, error } = await this.#write(this.#hostId, body, { sequence, timeoutMs: STATION_LIMITS.selfStopMs });
    if (error === undefined && seq !== undefined) {
      this.#ownSequence = Math.max(this.#ownSequence, seq);
      return "renewed";
    }
    if (error?.err_code !== WRONG_LAST_SEQUENCE) throw new Error(`The lease was not written: ${error?.description}.`);
    if (this.#ownSequence !== sequence) return "overtaken";
    const last = await this.#readOwn();
    // The acknowledgement of an earlier renewal has come meanwhile: the next renewal shows whether its record was removed.
    if (this.#ownSequence !== sequence) return "overtaken";
    if (last.sequence === sequence) throw new Error("An earlier renewal is still being stored.");
    this.#ownSequence = last.sequence;
    return last.isRemoved ? "removed" : "overtaken";
  }

  /** Removes this host's record, so that the other hosts take over at once. */
  async leave(): Promise<void> {
    const { error } = await this.#write(this.#hostId, "", { timeoutMs: STATION_LIMITS.renewAgainMs });
    if (error !== undefined) throw new Error(`The lease could not be removed: ${error.description}.`);
  }

  stop(): void {
    this.#feed.stop();
  }

  #silenceOf({ fromMs }: HostRecord): number {
    return this.#measuredMs - fromMs;
  }

  /**
   * Whether the host has been silent for too long. It acts for `selfStopMs` at most after it has sent its newest record. So it
   * has stopped when that record came so long ago, however late the renewals were by which its silence was measured.
   */
  #isDead(record: HostRecord): boolean {
    const { takeOverMs, selfStopMs } = STATION_LIMITS;
    return this.#silenceOf(record) >= takeOverMs && performance.now() - record.receivedAtMs >= selfStopMs;
  }

  async #remove({ hostId, sequence, holds }: HostRecord): Promise<void> {
    try {
      const { error } = await this.#write(hostId, "", { sequence, timeoutMs: STATION_LIMITS.renewAgainMs });
      if (error !== undefined) return;
      if (this.#others.get(hostId)?.sequence === sequence) this.#others.delete(hostId);
      this.#log.warn({ hostId, count: holds.size }, "a host is silent; its partitions are free");
    } catch (error) {
      this.#removalFailures.failed(error, { hostId });
    } finally {
      this.#removing.delete(hostId);
    }
  }

  /** Deletes the empty records of hosts that ended long ago: none of them can still be waiting for its removal. */
  async #deleteOldRemovals(nowMs: number): Promise<void> {
    const { stream, prefix, removedForMs = Number.POSITIVE_INFINITY } = this.#place;
    try {
      for (const [hostId, removedAtMs] of this.#removed) {
        if (removedAtMs > nowMs - removedForMs) continue;
        await this.#bus.jsm.streams.purge(stream, { filter: `${prefix}${hostId}` });
        this.#removed.delete(hostId);
      }
    } catch (error) {
      this.#log.warn({ err: error }, "leases of hosts that have ended could not be deleted; the next host tries again");
    }
  }

  /** With a `sequence`, writes only if the host's newest record still has it. */
  async #write(
    hostId: string,
    body: string,
    { sequence, timeoutMs }: { readonly sequence?: number; readonly timeoutMs: number },
  ): Promise<LeaseAnswer> {
    const conditions: MsgHdrs = headers();
    if (sequence !== undefined) conditions.set("Nats-Expected-Last-Subject-Sequence", String(sequence));
    if (body === "") conditions.set("KV-Operation", "DEL");
    const answer = await this.#bus.nc.request(`${this.#place.prefix}${hostId}`, body, {
      timeout: timeoutMs,
      headers: conditions,
    });
    return answer.json<LeaseAnswer>();
  }

  /** This host's record as the stream's leader has it. */
  async #readOwn(): Promise<{ readonly sequence: number; readonly isRemoved: boolean }> {
    const request = JSON.stringify({ last_by_subj: `${this.#place.prefix}${this.#hostId}` });
    const subject = `$JS.API.STREAM.MSG.GET.${this.#place.stream}`;
    const answer = await this.#bus.nc.request(subject, request, { timeout: STATION_LIMITS.selfStopMs });
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
      receivedAtMs: performance.now(),
    });
  }

  #receiveOwn(count: number, storedAtMs: number): void {
    const sentAtMs = this.#sent.get(count);
    if (sentAtMs === undefined || count <= this.#seenCount) return;
    if (this.#seenSentAtMs > 0) {
      this.#measuredMs += Math.min(sentAtMs - this.#seenSentAtMs, STATION_LIMITS.countedGapMs);
    } else {
      this.#measureBefore(storedAtMs);
      void this.#deleteOldRemovals(storedAtMs);
    }
    this.#seenCount = count;
    this.#seenSentAtMs = sentAtMs;
    for (const older of this.#sent.keys()) if (older <= count) this.#sent.delete(older);
  }

  /**
   * Called at this host's first record: only the server's clock can measure the silence before it. A host that was silent for
   * very long is dead. Any other host has to be silent for at least one more renewal interval.
   */
  #measureBefore(storedAtMs: number): void {
    const { forgottenMs, takeOverMs, renewMs } = STATION_LIMITS;
    const nowMs = performance.now();
    for (const record of this.others()) {
      const silentMs = Math.max(0, storedAtMs - record.storedAtMs);
      const countedMs = silentMs >= forgottenMs ? takeOverMs : Math.min(silentMs, takeOverMs - renewMs);
      const fromMs = this.#measuredMs - countedMs;
      this.#others.set(record.hostId, { ...record, fromMs, receivedAtMs: nowMs - countedMs });
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
