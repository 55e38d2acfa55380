/**
 * Appends with an unknown outcome: the host sent a commit, got no acknowledgement, and could not read the log back. The
 * commit may be stored, or may be stored later. Until the outcome is known, the station's commands are answered
 * `unavailable`: any other answer would be a guess.
 *
 *   unknown ──► read the newest commit ──► a newer one than expected: its effects start now
 *                   └── still the old one: commit `command_ruled_out` in its place, so that the other can never be stored
 *                           └── no answer: pause, again
 */
import { partitionOf } from "../../machines/partition.ts";
import { currentRequestId, type Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { LocalCommands } from "./mailboxes.ts";
import type { LocalCommand } from "./work.ts";

interface UnknownAppendsDeps {
  readonly log: Log;
  readonly localCommands: LocalCommands;
  /** Called when a station may take commands again. */
  readonly admit: (stationId: number) => void;
  /** Whether this host may append to the station's log now. */
  readonly canAppend: (stationId: number) => boolean;
}

export interface UnknownAppend {
  readonly commandId: string;
  /** The station's newest commit when this one was sent: the condition under which it is stored. */
  readonly expectedSequence: number;
}

interface Watch extends UnknownAppend {
  readonly stationId: number;
  /** Of the command whose append it was. */
  readonly requestId: string | undefined;
  readonly sinceMs: number;
  pauseMs: number;
  timer: NodeJS.Timeout | undefined;
  isOver: boolean;
}

export class UnknownAppends {
  readonly #deps: UnknownAppendsDeps;
  /** At most one entry per station, because a station has one append under way at a time. */
  readonly #watches = new Map<number, Watch>();

  constructor(deps: UnknownAppendsDeps) {
    this.#deps = deps;
  }

  /** Stations whose newest append has an unknown outcome. */
  get size(): number {
    return this.#watches.size;
  }

  /** Reads the station until the outcome is known. */
  watch(stationId: number, append: UnknownAppend): void {
    // The append of `command_ruled_out` has an unknown outcome, too: the first append's condition decides for both.
    if (this.#watches.has(stationId)) return;
    const pauseMs = STATION_LIMITS.unknownPauseMs;
    const facts = { ...append, stationId, requestId: currentRequestId(), sinceMs: performance.now() };
    const watch: Watch = { ...facts, pauseMs, timer: undefined, isOver: false };
    this.#watches.set(stationId, watch);
    const { commandId } = append;
    this.#deps.log.warn({ stationId, commandId }, "the outcome of an append is unknown; the station waits for it");
    this.#schedule(watch, 0);
  }

  /** Leaves the stations of a partition to its next owner, who reads them. */
  abandon(partition: number): void {
    for (const watch of this.#watches.values()) if (partitionOf(watch.stationId) === partition) this.#end(watch);
  }

  stop(): void {
    for (const watch of this.#watches.values()) this.#end(watch);
  }

  #schedule(watch: Watch, afterMs: number): void {
    watch.timer = setTimeout(() => this.#check(watch), afterMs);
  }

  #check(watch: Watch): void {
    if (!this.#deps.canAppend(watch.stationId)) return this.#checkLater(watch);
    const { stationId, expectedSequence, commandId, requestId } = watch;
    this.#deps.localCommands.submit({
      stationId,
      commandId: `rule_out:${commandId}`,
      command: (_state, sequence): LocalCommand | undefined =>
        sequence === expectedSequence ? { type: "rule_out", commandId } : undefined,
      isAboutUnknown: true,
      requestId,
      isVoid: () => watch.isOver,
      done: (answer) => {
        if (watch.isOver) return;
        if (answer === undefined) return this.#checkLater(watch);
        this.#end(watch);
        const tookMs = Math.round(performance.now() - watch.sinceMs);
        this.#deps.log.info({ stationId, commandId, tookMs }, "the outcome of an append is known");
      },
    });
  }

  #checkLater(watch: Watch): void {
    this.#schedule(watch, watch.pauseMs);
    watch.pauseMs = Math.min(watch.pauseMs * 2, STATION_LIMITS.unknownLongestPauseMs);
  }

  #end(watch: Watch): void {
    watch.isOver = true;
    clearTimeout(watch.timer);
    this.#watches.delete(watch.stationId);
    this.#deps.admit(watch.stationId);
  }
}
