/**
 * PostgreSQL's clock, compared with the clock of the bus. Both decide about a QR: stations go by the time of the bus, and
 * PostgreSQL has the time at which money was recorded.
 */
import type { Registry } from "prom-client";
import type { BusClock } from "../bus/bus-clock.ts";
import { BUS_LIMITS } from "../bus/limits.ts";
import type { LineLog } from "../runtime/log.ts";
import { addGauge } from "../runtime/metrics.ts";
import type { Database, Fragment } from "./pool.ts";

/** PostgreSQL's time in milliseconds since the epoch, for a statement after `startComparison`. */
export function databaseNowMs(database: Database): Fragment {
  return database`(extract(epoch from clock_timestamp()) * 1000)::float8`;
}

/**
 * Called before a statement. The returned function gets PostgreSQL's time from its answer. It returns by how many
 * milliseconds PostgreSQL is at least ahead of the bus, negative when it is behind: a slow statement proves less.
 */
export function startComparison(clock: Pick<BusClock, "nowMs" | "latestMs">): (databaseMs: number) => number {
  const earliestMs = clock.nowMs();
  return (databaseMs) => Math.round(Math.max(0, databaseMs - clock.latestMs()) + Math.min(0, databaseMs - earliestMs));
}

export function isWrong(aheadMs: number): boolean {
  return Math.abs(aheadMs) > BUS_LIMITS.wrongClockMs;
}

/**
 * The returned function compares the clocks. It logs when PostgreSQL's clock becomes wrong and when it is right again. Adds
 * a metric for the difference.
 */
export function databaseClockCheck(deps: {
  readonly clock: Pick<BusClock, "nowMs" | "latestMs" | "aheadMs">;
  readonly log: LineLog;
  readonly metrics?: Registry | undefined;
}): (database: Database) => Promise<void> {
  const { clock, log, metrics } = deps;
  let knownAheadMs = Number.NaN;
  let wasWrong = false;
  addGauge(
    metrics,
    "database_clock_ahead_seconds",
    "By how much PostgreSQL's clock is ahead of the bus, at least; negative when it is behind.",
    () => knownAheadMs / 1_000,
  );
  return async (database) => {
    // Before its first measurement the clock of the bus has this machine's time.
    const isBusKnown = clock.aheadMs() !== undefined;
    const aheadMsOf = startComparison(clock);
    const [row] = await database<[{ now_ms: number }]>`select ${databaseNowMs(database)} as now_ms`;
    const aheadMs = aheadMsOf(row.now_ms);
    if (!isBusKnown) return;
    knownAheadMs = aheadMs;
    if (isWrong(aheadMs) === wasWrong) return;
    wasWrong = !wasWrong;
    const facts = { aheadMs, limitMs: BUS_LIMITS.wrongClockMs };
    if (wasWrong)
      log.warn(
        facts,
        "the clocks of PostgreSQL and of the bus differ: a QR may expire late, or a payment in time count as late; correct the wrong one",
      );
    else log.info(facts, "the clocks of PostgreSQL and of the bus agree again");
  };
}
