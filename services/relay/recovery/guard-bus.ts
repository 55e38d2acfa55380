/**
 * Makes good what the bus has lost (design §3).
 *
 *   this relay leads, the bus was away, ──► compare each stream with what is known of it ──► note what to tell anew
 *   or a stream is not what it was                                                                    │
 *                 ▲                                                                                   │
 *                 └── every second: note what the streams have now ◄── tell it, page by page ◄────────┘
 *
 * Until the switches are told, nobody believes those that are there: the relay says in their bucket when they are.
 *
 * What has to be told is one row for each part, written together with the new marks, so that a relay that dies in the
 * middle is succeeded by one that goes on. Everything told is idempotent: states are compared by revision, entries of
 * buckets are put once.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { StreamInfo } from "@nats-io/jetstream";
import type { Bus } from "../../bus/connection.ts";
import { ensureStreams } from "../../bus/ensure-streams.ts";
import { RELAY_LIMITS } from "../limits.ts";
import {
  type AnnouncedPart,
  noteAnnounced,
  requestAnnouncements,
  selectPendingAnnouncements,
} from "../sql/bus-announcements.ts";
import { type Mark, selectMarks, selectNotedSequences, upsertMarks } from "../sql/bus-marks.ts";
import { noteSwitchesTold } from "../switch-bucket.ts";
import { hasLost, markOf, streamInfo, WATCHED_STREAMS } from "./look-at-streams.ts";
import type { TellDeps, Told } from "./tell.ts";
import { tellCredentials, tellSessions } from "./tell-entries.ts";
import { tellStations } from "./tell-stations.ts";
import { tellSwitches } from "./tell-switches.ts";

export interface GuardDeps extends TellDeps {
  readonly bus: Bus;
  readonly replicas: number;
}

const TELL: Readonly<Record<AnnouncedPart, (deps: TellDeps, sinceId: number) => Promise<Told>>> = {
  stations: tellStations,
  credentials: tellCredentials,
  sessions: tellSessions,
  switches: tellSwitches,
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
  /** The one that is noted as told. */
  #toldServerId = "";
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
    const { sql, bus, log, replicas } = this.#deps;
    const isInDoubt = this.#isInDoubt;
    this.#isInDoubt = false;
    try {
      if (isInDoubt) {
        this.#serverId = bus.nc.info?.server_id ?? "";
        this.#toldServerId = "";
        // A server with another data folder has no streams until somebody makes them.
        await ensureStreams(bus, { replicas });
        this.#marks = await selectMarks(sql);
      }
      const noted = isInDoubt ? await selectNotedSequences(sql) : undefined;
      const moved: Mark[] = [];
      const lost: AnnouncedPart[] = [];
      for (const { name, part, noted: notedBy } of WATCHED_STREAMS) {
        const info = await streamInfo(bus.jsm, name);
        const mark = this.#marks.get(name);
        if (!isInDoubt && isAnother(info, mark)) return this.doubt(true);
        if (info === undefined) throw new Error(`There is no stream ${name}.`);
        const now = markOf(info);
        const known = noted && { mark, notedSequence: noted[notedBy] };
        const isLost = known !== undefined && (await hasLost(bus.jsm, info, known));
        if (isLost) {
          lost.push(part);
          const facts = { stream: name, had: mark, has: now, noted: known.notedSequence };
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
    await this.#deps.sql.begin(async (tx) => {
      await requestAnnouncements(tx, lost);
      await upsertMarks(tx, moved);
    });
    this.#marks = new Map([...this.#marks, ...moved.map((mark) => [mark.stream, mark] as const)]);
  }

  async #tell(signal: AbortSignal): Promise<void> {
    const { sql, log } = this.#deps;
    const pending = await selectPendingAnnouncements(sql);
    if (!pending.some(({ part }) => part === "switches")) await this.#noteSwitchesTold();
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
        await noteAnnounced(sql, { part, toldThrough, isFinished: !hasMore });
      }
      log.info(
        { part, news, tookMs: Math.round(performance.now() - startedAtMs) },
        "told the bus what it did not know",
      );
      if (part === "switches") await this.#noteSwitchesTold();
    }
  }

  /** Once for each run of the server: what the bus has lost meanwhile is in doubt, and noted again when that is over. */
  async #noteSwitchesTold(): Promise<void> {
    if (this.#isInDoubt || this.#toldServerId === this.#serverId) return;
    await noteSwitchesTold(this.#deps, { serverId: this.#serverId });
    this.#toldServerId = this.#serverId;
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
