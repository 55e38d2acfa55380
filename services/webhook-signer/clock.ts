/**
 * The time of PostgreSQL, for signatures and for all times that are stored in PostgreSQL or compared with stored ones. So a
 * process on a machine with a wrong clock signs with the right time, and no breaker stays open for hours.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import { SIGNER_LIMITS } from "./limits.ts";

export interface Clock {
  /** Milliseconds since the epoch: the steady clock, corrected at each comparison with PostgreSQL. */
  readonly nowMs: () => number;
  /** Compares with PostgreSQL's clock, and logs when this machine's clock is wrong. */
  readonly compare: () => Promise<void>;
  /**
   * Compares when this machine's two clocks differ more than before: the steady clock stops while the machine sleeps, and
   * signatures would then have an old time.
   */
  readonly compareIfMoved: () => Promise<void>;
}

/** Compares for the first time. Rejects when PostgreSQL does not answer. */
export async function startClock(database: Database, log: Pick<Log, "error" | "info">): Promise<Clock> {
  let atStartMs = 0;
  let isWrong = false;
  let apartMs = 0;
  const compare = async (): Promise<void> => {
    let quickest = await measure(database);
    // A slow answer is imprecise, so the quickest of several counts.
    for (let more = 0; more < SIGNER_LIMITS.clockReads && quickest.tookMs > SIGNER_LIMITS.clockReadMs; more += 1) {
      await delay(SIGNER_LIMITS.clockReadMs);
      const next = await measure(database);
      if (next.tookMs < quickest.tookMs) quickest = next;
    }
    atStartMs = quickest.atStartMs;
    apartMs = quickest.apartMs;
    const aheadByMs = Math.round(quickest.aheadByMs);
    const wasWrong = isWrong;
    isWrong = Math.abs(aheadByMs) > SIGNER_LIMITS.wrongClockMs + quickest.tookMs;
    if (isWrong) {
      log.error(
        { aheadByMs },
        "THE CLOCK OF THIS MACHINE IS WRONG: webhooks are signed with PostgreSQL's time; set it right",
      );
    } else if (wasWrong) log.info({ aheadByMs }, "this machine's clock is right again");
  };
  await compare();
  return {
    nowMs: () => atStartMs + performance.now(),
    compare,
    async compareIfMoved() {
      if (Math.abs(Date.now() - performance.now() - apartMs) > SIGNER_LIMITS.wrongClockMs) await compare();
    },
  };
}

interface Measured {
  /** PostgreSQL's time when `performance.now()` was zero, and by how much this machine's clock is ahead of it. */
  readonly atStartMs: number;
  readonly aheadByMs: number;
  readonly tookMs: number;
  /** The difference of this machine's two clocks before the query, so that a sleep during the query is noticed too. */
  readonly apartMs: number;
}

async function measure(database: Database): Promise<Measured> {
  const askedAtMs = performance.now();
  const apartMs = Date.now() - askedAtMs;
  const [row] = await database<[{ now_ms: number }]>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms`;
  const tookMs = performance.now() - askedAtMs;
  const atStartMs = row.now_ms - askedAtMs - tookMs / 2;
  return { atStartMs, aheadByMs: Date.now() - (atStartMs + performance.now()), tookMs, apartMs };
}
