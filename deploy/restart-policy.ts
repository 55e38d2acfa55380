import { deployLimits } from "./limits.ts";

/** Times are in milliseconds; see `deployLimits` for what they are for. */
export type RestartLimits = Pick<
  typeof deployLimits,
  "restartFirstMs" | "restartMaxMs" | "restartQuietMs" | "restartMaxEnds" | "restartWindowMs"
>;

/** What to do about a part that ended: start it again after a pause, or give up, and why in words. */
export type Verdict = { afterMs: number } | { giveUp: string };

/**
 * Decides when a part that ended by itself is started again. It is called with every start and every end, a start that did
 * not succeed included; the times are those of one clock that never goes back.
 */
export class RestartPolicy {
  readonly #limits: Readonly<Record<keyof RestartLimits, number>>;
  #endsAtMs: number[] = [];
  #pauseMs: number;
  #upAtMs: number | undefined;
  #lastUpMs: number;

  constructor(nowMs: number, limits: Readonly<Record<keyof RestartLimits, number>> = deployLimits) {
    this.#limits = limits;
    this.#pauseMs = limits.restartFirstMs;
    this.#upAtMs = nowMs;
    this.#lastUpMs = nowMs;
  }

  up(nowMs: number): void {
    this.#upAtMs = nowMs;
    this.#lastUpMs = nowMs;
  }

  /** It ended because the disk was full, which does not count against it; the pauses grow as after any end. */
  endedForSpace(nowMs: number): { afterMs: number } {
    this.#wasUpUntil(nowMs);
    this.#lastUpMs = nowMs;
    return this.#pause();
  }

  ended(nowMs: number): Verdict {
    const { restartMaxEnds, restartWindowMs } = this.#limits;
    this.#wasUpUntil(nowMs);
    this.#endsAtMs = [...this.#endsAtMs.filter((endMs) => nowMs - endMs < restartWindowMs), nowMs];
    if (this.#endsAtMs.length >= restartMaxEnds) {
      return { giveUp: `ended ${restartMaxEnds} times within ${inWords(restartWindowMs)}` };
    }
    if (nowMs - this.#lastUpMs >= restartWindowMs) {
      return { giveUp: `could not be started again for ${inWords(restartWindowMs)}` };
    }
    return this.#pause();
  }

  #wasUpUntil(nowMs: number): void {
    if (this.#upAtMs === undefined) return;
    if (nowMs - this.#upAtMs >= this.#limits.restartQuietMs) this.#pauseMs = this.#limits.restartFirstMs;
    this.#upAtMs = undefined;
    this.#lastUpMs = nowMs;
  }

  #pause(): { afterMs: number } {
    const afterMs = this.#pauseMs;
    this.#pauseMs = Math.min(this.#limits.restartMaxMs, this.#pauseMs * 2);
    return { afterMs };
  }
}

/** `5 minutes`, or seconds when it is less than two minutes. */
function inWords(ms: number): string {
  return ms < 120_000 ? `${ms / 1_000} s` : `${ms / 60_000} minutes`;
}
