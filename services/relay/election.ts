/**
 * One relay delivers, the others stand by. Who holds PostgreSQL's advisory lock delivers; the lock ends with its session,
 * so a relay that dies, or loses its connection, is succeeded without anybody deciding that it is dead.
 */
import { setTimeout as delay } from "node:timers/promises";
import { closeDatabase, type Database, openDatabase } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { tryLeaderLock } from "./sql/leader-lock.ts";

/** The time during which this relay is the one that delivers. */
export interface Term {
  /** One connection, which holds the lock. */
  readonly session: Database;
  /** What `pg_backend_pid()` says on it. Another answer means another session, without the lock. */
  readonly backendPid: number;
  /** Aborted when the term is over. */
  readonly signal: AbortSignal;
}

export interface ElectionOptions {
  readonly databaseUrl: string;
  readonly log: Pick<Log, "info" | "warn">;
  /** Delivers until the term's signal is aborted; when it returns or throws the lock is given up. */
  readonly lead: (term: Term) => Promise<void>;
}

export interface Election {
  /** Resolves when the first attempt is over: this relay delivers, stands by, or could not reach PostgreSQL yet. */
  readonly stood: Promise<void>;
  /** Ends the term, if there is one, and stands no more. */
  readonly stop: () => Promise<void>;
}

export function standForElection(options: ElectionOptions): Election {
  const stopping = new AbortController();
  const { promise: stood, resolve: haveStood } = Promise.withResolvers<void>();
  const running = run(options, stopping.signal, haveStood);
  return {
    stood,
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

async function run(options: ElectionOptions, stopping: AbortSignal, haveStood: () => void): Promise<void> {
  let lastReason = "";
  while (!stopping.aborted) {
    try {
      await standOnce(options, stopping, haveStood);
      lastReason = "";
    } catch (error) {
      // Told once and not at each try: PostgreSQL may be away for hours.
      const reason = String(error);
      if (!stopping.aborted && reason !== lastReason) options.log.warn({ err: error }, "the relay cannot deliver now");
      lastReason = reason;
      haveStood();
    }
    await delay(RELAY_LIMITS.electionIntervalMs, undefined, { signal: stopping }).catch(() => undefined);
  }
}

/** Stands by until elected, leads until that ends. */
async function standOnce(options: ElectionOptions, stopping: AbortSignal, haveStood: () => void): Promise<void> {
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, stopping]);
  const session = openDatabase({
    url: options.databaseUrl,
    maxConnections: 1,
    keepConnections: true,
    name: "device-payments relay leader",
    onClose: () => ended.abort(),
  });
  try {
    while (!signal.aborted) {
      const { isLeader, backendPid } = await tryLeaderLock(session);
      if (isLeader) {
        options.log.info({ backendPid }, "this relay delivers");
        const leading = options.lead({ session, backendPid, signal });
        haveStood();
        return await leading;
      }
      haveStood();
      await delay(RELAY_LIMITS.electionIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    ended.abort();
    await closeDatabase(session);
  }
}
