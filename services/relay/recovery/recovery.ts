/**
 * Restores what the bus has lost (design §3).
 *
 *   this relay leads, the bus was away, ──► check each stream against its mark ──► note the parts to announce again
 *   or a stream is not what it was                                                                │
 *                 ▲                                                                               │
 *                 └── every second: mark what the streams have now ◄── announce, page by page ◄───┘
 *
 * Until a bucket is complete, its readers do not treat an entry that they do not find as missing: no kill switch counts as
 * off, no credential and no session as unknown. The relay writes a notice into each bucket when it is complete.
 *
 * The parts to announce are rows, written together with the new marks, so that the next relay goes on where a
 * relay has crashed.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { StreamInfo } from "@nats-io/jetstream";
import { OutageLog } from "../../runtime/repeat.ts";
import { type NoticeSequences, noteComplete, readNoticeSequences } from "../buckets.ts";
import { RELAY_LIMITS } from "../limits.ts";
import {
  ANNOUNCED_PARTS,
  type AnnouncedPart,
  type Mark,
  type MovedMark,
  noteAnnounced,
  noteMarks,
  type PendingAnnouncement,
  selectCopiedStations,
  selectMarks,
  selectNoted,
  selectPendingAnnouncements,
} from "../sql/bus-state.ts";
import { ANNOUNCE, type AnnounceDeps } from "./announce.ts";
import {
  BUCKET_OF_PART,
  checkStream,
  isLogPurged,
  knownSequence,
  markOf,
  NoStreamError,
  streamInfo,
  watchedStreams,
} from "./check-streams.ts";

interface RecoveryDeps extends AnnounceDeps {
  /** Of this relay's term: it does not overwrite what another term writes. */
  readonly epoch: number;
}

/** Runs until the signal is aborted. Never rejects: what fails is tried again. */
export async function recoverBus(deps: RecoveryDeps, signal: AbortSignal): Promise<void> {
  const recovery = new Recovery(deps);
  const stopListening = deps.bus.onChange((isUp) => recovery.requestCheck(isUp));
  try {
    await recovery.run(signal);
  } finally {
    stopListening();
  }
}

class Recovery {
  readonly #deps: RecoveryDeps;
  readonly #outage: OutageLog;
  /** The bus may have lost something since the last check. */
  #needsCheck = true;
  #marks: ReadonlyMap<string, Mark> = new Map();
  /** The server that was checked, by the id of its run. */
  #serverId = "";
  /** When the notice for this server was last written, in milliseconds of `performance.now()`. */
  readonly #noticedAtMs = new Map<AnnouncedPart, number>();
  /** Where the notices of the buckets were when the server was checked, and since. */
  readonly #notices = new Map<AnnouncedPart, NoticeSequences>();
  #wake = Promise.withResolvers<void>();

  constructor(deps: RecoveryDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "the relay's recovery of the bus");
  }

  requestCheck(isUp: boolean): void {
    this.#needsCheck = true;
    if (isUp) this.#wake.resolve();
  }

  async run(signal: AbortSignal): Promise<void> {
    let pauseMs: number = RELAY_LIMITS.markIntervalMs;
    while (!signal.aborted) {
      // Before the work: a request that comes meanwhile must not wait for the next turn.
      this.#wake = Promise.withResolvers<void>();
      try {
        if (this.#deps.bus.isUp()) {
          await this.#check();
          await this.#announceAll(signal);
        }
        this.#outage.worked();
        pauseMs = RELAY_LIMITS.markIntervalMs;
      } catch (error) {
        if (!signal.aborted) this.#outage.failed(error);
        pauseMs = Math.min(pauseMs * 2, RELAY_LIMITS.longestRetryPauseMs);
      }
      // The pause ends early when the bus is back.
      await Promise.race([delay(pauseMs, undefined, { signal }).catch(() => undefined), this.#wake.promise]);
    }
  }

  /** Checks the streams where that was requested, and marks what they have now. */
  async #check(): Promise<void> {
    const { sql, bus, log, logs, epoch } = this.#deps;
    const isRequested = this.#needsCheck;
    this.#needsCheck = false;
    try {
      if (isRequested) await this.#startCheck();
      const noted = isRequested ? await selectNoted(sql) : undefined;
      const moved: MovedMark[] = [];
      const lost: AnnouncedPart[] = [];
      const streams = watchedStreams(logs);
      const readAtMs = performance.now();
      // Together, so that the relay and the server wake up once for all of them.
      const infos = await Promise.all(streams.map(({ name }) => streamInfo(bus.jsm, name)));
      for (const [index, { name, part }] of streams.entries()) {
        const found = infos[index];
        const mark = this.#marks.get(name);
        if (!isRequested && (isReplaced(found, mark) || this.#isNoticePurged(part, found)))
          return this.requestCheck(true);
        if (found === undefined) throw new NoStreamError(name);
        const known = noted && { mark, noted: noted.get(name), logs };
        const { info, isLost: hasLostEnd } =
          known === undefined ? { info: found, isLost: false } : await checkStream(bus.jsm, found, known);
        const isPurged =
          part === "stations"
            ? await this.#isLogPurged(info, mark)
            : // Between two requested checks the bucket's first notice may still be missing.
              isRequested && (await this.#isBucketPurged(part, mark));
        const isLost = hasLostEnd || isPurged;
        const now = markOf(info);
        if (isLost) {
          if (!lost.includes(part)) lost.push(part);
          const facts = { stream: name, had: mark, has: now, noted: known?.noted?.sequence };
          if (mark === undefined) log.info(facts, "the bus is new");
          else log.error(facts, "the bus has lost data");
        }
        const isSame = mark?.created === now.created && mark.sequence === now.sequence;
        const lostThrough = knownSequence({ mark, noted: known?.noted });
        if (isLost || !isSame) moved.push(isLost && part === "stations" ? { ...now, lostThrough } : now);
      }
      // The bus was away meanwhile: what was read may be of two runs of the server, so no mark is written.
      if (this.#needsCheck) return this.#wake.resolve();
      if (moved.length === 0 && lost.length === 0) return;
      const uncopied = await noteMarks(sql, epoch, { moved, lost, ageMs: performance.now() - readAtMs });
      if (lost.length > 0)
        for (const stream of uncopied) log.error({ stream }, "commits were lost before they were copied");
      this.#marks = new Map([...this.#marks, ...moved.map((mark) => [mark.stream, mark] as const)]);
    } catch (error) {
      this.#needsCheck ||= isRequested;
      throw error;
    }
  }

  /** Whether the newest notice is gone, although this relay alone replaces it: the bucket may have lost everything. */
  #isNoticePurged(part: AnnouncedPart, info: StreamInfo | undefined): boolean {
    const newest = Math.max(...(this.#notices.get(part) ?? NO_NOTICES));
    return info !== undefined && newest > 0 && info.state.first_seq > newest;
  }

  /**
   * Whether a bucket that was complete has no notice any more. A purge (`nats stream purge`) removes all messages, but the
   * sequences go on, so the bucket's end does not show it.
   */
  async #isBucketPurged(part: AnnouncedPart, mark: Mark | undefined): Promise<boolean> {
    if (mark === undefined || Math.max(...(this.#notices.get(part) ?? NO_NOTICES)) > 0) return false;
    const pending = await selectPendingAnnouncements(this.#deps.sql);
    return !pending.some((announcement) => announcement.part === part);
  }

  /** The same for a log, which keeps the newest commit of each of its stations. */
  async #isLogPurged({ state }: StreamInfo, mark: Mark | undefined): Promise<boolean> {
    if (mark === undefined || state.first_seq <= mark.sequence) return false;
    const { bus, sql, logs } = this.#deps;
    return await isLogPurged(bus.jsm, logs, { stream: mark.stream, stationIds: await selectCopiedStations(sql) });
  }

  async #startCheck(): Promise<void> {
    const { sql, bus } = this.#deps;
    this.#serverId = bus.nc.info?.server_id ?? "";
    this.#noticedAtMs.clear();
    this.#marks = await selectMarks(sql);
    for (const part of ANNOUNCED_PARTS) {
      const bucket = BUCKET_OF_PART[part];
      if (bucket !== null) this.#notices.set(part, await readNoticeSequences(bus, bucket));
    }
  }

  async #announceAll(signal: AbortSignal): Promise<void> {
    const pending = await selectPendingAnnouncements(this.#deps.sql);
    for (const part of ANNOUNCED_PARTS) {
      if (!pending.some((other) => other.part === part)) await this.#noteComplete(part);
    }
    for (const announcement of pending) {
      // If the bus may have lost more meanwhile, the next turn checks and announces again.
      if (!(await this.#announce(announcement, signal))) return;
      await this.#noteComplete(announcement.part);
    }
  }

  /** False when the term is over, or the bus may have lost more. */
  async #announce({ part, through: from }: PendingAnnouncement, signal: AbortSignal): Promise<boolean> {
    const { sql, epoch, log } = this.#deps;
    const startedAtMs = performance.now();
    let through = from;
    let restored = 0;
    for (let hasMore = true; hasMore; ) {
      if (signal.aborted || this.#needsCheck) return false;
      const page = await ANNOUNCE[part](this.#deps, through);
      ({ hasMore, through } = page);
      restored += page.restored;
      if (this.#needsCheck) return false;
      await noteAnnounced(sql, epoch, { part, through, isFinished: !hasMore });
    }
    const tookMs = Math.round(performance.now() - startedAtMs);
    log.info({ part, restored, tookMs }, "the relay has compared this part of the bus with PostgreSQL");
    return true;
  }

  /** Writes the notice once for each run of the server, and daily; not while a check is due, which comes first. */
  async #noteComplete(part: AnnouncedPart): Promise<void> {
    const bucket = BUCKET_OF_PART[part];
    const ageMs = performance.now() - (this.#noticedAtMs.get(part) ?? Number.NEGATIVE_INFINITY);
    if (bucket === null || this.#needsCheck || ageMs < RELAY_LIMITS.noticeIntervalMs) return;
    const { bus } = this.#deps;
    const notices = await noteComplete(bus, bucket, { serverId: this.#serverId }, this.#notices.get(part));
    // Another relay has written meanwhile, or the bucket was created again.
    if (notices === undefined) return this.requestCheck(true);
    this.#notices.set(part, notices);
    this.#noticedAtMs.set(part, performance.now());
  }
}

const NO_NOTICES: NoticeSequences = [0, 0];

/** Whether the stream was removed, created again or shortened while the bus was up. */
function isReplaced(info: StreamInfo | undefined, mark: Mark | undefined): boolean {
  if (info === undefined) return true;
  return mark !== undefined && (info.created !== mark.created || info.state.last_seq < mark.sequence);
}
