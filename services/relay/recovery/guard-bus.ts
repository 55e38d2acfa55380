/**
 * Makes good what the bus has lost (design §3).
 *
 *   this relay leads, the bus was away, ──► compare each stream with what is known of it ──► note what to tell anew
 *   or a stream is not what it was                                                                    │
 *                 ▲                                                                                   │
 *                 └── every second: note what the streams have now ◄── tell it, page by page ◄────────┘
 *
 * Until a bucket is told, its readers take nothing for missing that they do not find in it: no kill switch for off, no
 * credential and no session for unknown. The relay says in each bucket when it is.
 *
 * What has to be told is one row for each part, written together with the new marks, so that a relay that dies in the
 * middle is succeeded by one that goes on. Everything told is idempotent: states are compared by revision, entries of
 * buckets are put once.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { StreamInfo } from "@nats-io/jetstream";
import type { Bus } from "../../bus/connection.ts";
import { type BucketDefinition, CREDENTIALS, SESSIONS, SWITCHES } from "../../bus/streams.ts";
import { noteTold, readToldSequences, type ToldSequences } from "../buckets.ts";
import { RELAY_LIMITS } from "../limits.ts";
import {
  ANNOUNCED_PARTS,
  type AnnouncedPart,
  noteAnnounced,
  selectPendingAnnouncements,
} from "../sql/bus-announcements.ts";
import { type Mark, noteMarks, selectMarks, selectNotedSequences } from "../sql/bus-marks.ts";
import { compare, markOf, streamInfo, watchedStreams } from "./look-at-streams.ts";
import type { TellDeps, Told } from "./tell.ts";
import { tellCredentials, tellSessions } from "./tell-entries.ts";
import { tellStations } from "./tell-stations.ts";
import { tellSwitches } from "./tell-switches.ts";

export interface GuardDeps extends TellDeps {
  /** Of this relay's term: what another term writes is not written over. */
  readonly epoch: number;
  readonly bus: Bus;
}

const TELL: Readonly<Record<AnnouncedPart, (deps: TellDeps, sinceId: number) => Promise<Told>>> = {
  stations: tellStations,
  credentials: tellCredentials,
  sessions: tellSessions,
  switches: tellSwitches,
};

/** Where it is said that a part is told; the log of the stations takes nothing but commits. */
const SAID_IN: Readonly<Record<AnnouncedPart, BucketDefinition | null>> = {
  stations: null,
  credentials: CREDENTIALS,
  sessions: SESSIONS,
  switches: SWITCHES,
};

/** Runs until the signal is aborted. Never rejects: what fails is tried again. */
export async function guardBus(deps: GuardDeps, signal: AbortSignal): Promise<void> {
  const guard = new Guard(deps);
  const stopListening = deps.bus.onChange((isUp) => guard.doubt(isUp));
  try {
    await guard.run(signal);
  } finally {
    stopListening();
  }
}

class Guard {
  readonly #deps: GuardDeps;
  /** Something may have been lost since the last comparison. */
  #isInDoubt = true;
  #marks: ReadonlyMap<string, Mark> = new Map();
  #lastReason = "";
  /** The server that has been compared, by the id of its run. */
  #serverId = "";
  /** When it was last said of a part that this server is told, in milliseconds of `performance.now()`. */
  readonly #saidAtMs = new Map<AnnouncedPart, number>();
  /** How the words of the buckets stood when the server was compared, and since. */
  #toldSequences: ReadonlyMap<AnnouncedPart, ToldSequences> = new Map();
  #wake = Promise.withResolvers<void>();

  constructor(deps: GuardDeps) {
    this.#deps = deps;
  }

  doubt(isUp: boolean): void {
    this.#isInDoubt = true;
    if (isUp) this.#wake.resolve();
  }

  async run(signal: AbortSignal): Promise<void> {
    let pauseMs: number = RELAY_LIMITS.markIntervalMs;
    while (!signal.aborted) {
      // Before the work: a doubt that comes while it is done must not wait for the next look.
      this.#wake = Promise.withResolvers<void>();
      try {
        if (this.#deps.bus.isUp()) {
          await this.#look();
          await this.#tell(signal);
        }
        this.#lastReason = "";
        pauseMs = RELAY_LIMITS.markIntervalMs;
      } catch (error) {
        this.#complain(error, signal);
        pauseMs = Math.min(pauseMs * 2, RELAY_LIMITS.longestRetryPauseMs);
      }
      // Woken when the bus is back, so that nothing else has to be waited for.
      await Promise.race([delay(pauseMs, undefined, { signal }).catch(() => undefined), this.#wake.promise]);
    }
  }

  /** Compares when there is a doubt, and notes what the streams have now. */
  async #look(): Promise<void> {
    const { sql, bus, log, logs } = this.#deps;
    const isInDoubt = this.#isInDoubt;
    this.#isInDoubt = false;
    try {
      if (isInDoubt) {
        this.#serverId = bus.nc.info?.server_id ?? "";
        this.#saidAtMs.clear();
        this.#marks = await selectMarks(sql);
        this.#toldSequences = await this.#readTold();
      }
      const noted = isInDoubt ? await selectNotedSequences(sql) : undefined;
      const moved: Mark[] = [];
      const lost: AnnouncedPart[] = [];
      for (const { name, part } of watchedStreams(logs)) {
        const found = await streamInfo(bus.jsm, name);
        const mark = this.#marks.get(name);
        if (!isInDoubt && isAnother(found, mark)) return this.doubt(true);
        if (found === undefined) throw new Error(`The NATS has no stream ${name}: run \`npm run migrate\`.`);
        const known = noted && { mark, notedSequence: noted.get(name) ?? 0 };
        const { info, isLost } =
          known === undefined ? { info: found, isLost: false } : await compare(bus.jsm, found, known);
        const now = markOf(info);
        if (isLost) {
          if (!lost.includes(part)) lost.push(part);
          const facts = { stream: name, had: mark, has: now, noted: known?.notedSequence };
          if (mark === undefined) log.info(facts, "the bus is new");
          else log.error(facts, "the bus has lost data");
        }
        if (isLost || !isSame(mark, now)) moved.push(now);
      }
      // The bus was away meanwhile: what was read may be of two lives, and no mark may come of it.
      if (this.#isInDoubt) return this.#wake.resolve();
      if (moved.length > 0 || lost.length > 0) await this.#note(moved, lost);
    } catch (error) {
      this.#isInDoubt ||= isInDoubt;
      throw error;
    }
  }

  async #note(moved: readonly Mark[], lost: readonly AnnouncedPart[]): Promise<void> {
    const { sql, epoch } = this.#deps;
    await noteMarks(sql, epoch, { moved, lost });
    this.#marks = new Map([...this.#marks, ...moved.map((mark) => [mark.stream, mark] as const)]);
  }

  async #tell(signal: AbortSignal): Promise<void> {
    const { sql, epoch, log } = this.#deps;
    const pending = await selectPendingAnnouncements(sql);
    for (const part of ANNOUNCED_PARTS) {
      if (!pending.some((other) => other.part === part)) await this.#sayTold(part);
    }
    for (const { part, told_through } of pending) {
      const startedAtMs = performance.now();
      let toldThrough = told_through;
      let news = 0;
      for (let hasMore = true; hasMore; ) {
        // Told to a bus that has lost more meanwhile, it would have to be told once more.
        if (signal.aborted || this.#isInDoubt) return;
        const told = await TELL[part](this.#deps, toldThrough);
        ({ hasMore, through: toldThrough } = told);
        news += told.news;
        if (this.#isInDoubt) return;
        await noteAnnounced(sql, epoch, { part, toldThrough, isFinished: !hasMore });
      }
      log.info(
        { part, news, tookMs: Math.round(performance.now() - startedAtMs) },
        "told the bus what it did not know",
      );
      await this.#sayTold(part);
    }
  }

  /** Once for each run of the server, and daily: what the bus has lost meanwhile is in doubt, and said again when that is over. */
  async #sayTold(part: AnnouncedPart): Promise<void> {
    const bucket = SAID_IN[part];
    const saidForMs = performance.now() - (this.#saidAtMs.get(part) ?? Number.NEGATIVE_INFINITY);
    if (bucket === null || this.#isInDoubt || saidForMs < RELAY_LIMITS.toldAgainMs) return;
    const stand = await noteTold(this.#deps, bucket, { serverId: this.#serverId }, this.#toldSequences.get(part));
    // Another relay has written meanwhile, or the bucket was created again.
    if (stand === undefined) return this.doubt(true);
    this.#toldSequences = new Map([...this.#toldSequences, [part, stand]]);
    this.#saidAtMs.set(part, performance.now());
  }

  async #readTold(): Promise<ReadonlyMap<AnnouncedPart, ToldSequences>> {
    const known = new Map<AnnouncedPart, ToldSequences>();
    for (const part of ANNOUNCED_PARTS) {
      const bucket = SAID_IN[part];
      if (bucket !== null) known.set(part, await readToldSequences(this.#deps, bucket));
    }
    return known;
  }

  /** Said once and not at each try. */
  #complain(error: unknown, signal: AbortSignal): void {
    const reason = String(error);
    if (!signal.aborted && reason !== this.#lastReason) {
      this.#deps.log.warn({ err: error }, "whether the bus has lost data cannot be told, or made good, now");
    }
    this.#lastReason = reason;
  }
}

/** Whether somebody has taken the stream away, made it anew or shortened it while the bus was there. */
function isAnother(info: StreamInfo | undefined, mark: Mark | undefined): boolean {
  if (info === undefined) return true;
  return mark !== undefined && (info.created !== mark.created || info.state.last_seq < mark.sequence);
}

function isSame(mark: Mark | undefined, now: Mark): boolean {
  return mark !== undefined && mark.created === now.created && mark.sequence === now.sequence;
}
