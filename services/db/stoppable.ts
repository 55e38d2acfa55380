/**
 * Transactions that end when their process stops. A statement over a whole file takes minutes. After a mere close of
 * the connection it continues in PostgreSQL, with its locks. So this cancels the statement there, and nothing of the
 * transaction is stored:
 *
 *   transaction under way ── the process stops ──► cancel its statement, again until the transaction has ended ──► WorkStoppedError
 */
import { setTimeout as delay } from "node:timers/promises";
import { DATABASE_LIMITS } from "./limits.ts";
import type { Database, Transaction } from "./pool.ts";

/** The process stops. Nothing of the transaction is stored. */
export class WorkStoppedError extends Error {
  readonly code = "work_stopped";
  constructor(cause?: unknown) {
    super("The process of this work has stopped.", { cause });
    this.name = "WorkStoppedError";
  }
}

interface StoppableOptions {
  readonly stopping: AbortSignal;
  /** Sends the cancellations. This pool must end after the transactions. */
  readonly canceller: Database;
}

type Work = (tx: Transaction) => Promise<unknown>;

/** The same pool; once `stopping` is aborted, its transactions reject with `WorkStoppedError`. */
export function stoppable(database: Database, options: StoppableOptions): Database {
  const begin = (work: Work): Promise<unknown> => beginStoppable(database, options, work);
  return new Proxy(database, {
    get: (pool, name): unknown => (name === "begin" ? begin : Reflect.get(pool, name)),
  });
}

async function beginStoppable(database: Database, options: StoppableOptions, work: Work): Promise<unknown> {
  const { stopping } = options;
  if (stopping.aborted) throw new WorkStoppedError();
  try {
    return await database.begin(async (tx) => {
      const [{ pid }] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
      if (stopping.aborted) throw new WorkStoppedError();
      const ended = new AbortController();
      stopping.addEventListener("abort", () => void cancelUntil(ended.signal, options, pid), { signal: ended.signal });
      try {
        return await work(tx);
      } finally {
        ended.abort();
      }
    });
  } catch (error) {
    throw stopping.aborted && isCancelled(error) ? new WorkStoppedError(error) : error;
  }
}

/** Repeats the cancellation, because between two statements it has no effect. */
async function cancelUntil(ended: AbortSignal, { canceller }: StoppableOptions, pid: number): Promise<void> {
  while (!ended.aborted) {
    await canceller`select pg_cancel_backend(${pid})`.catch(() => undefined);
    await delay(DATABASE_LIMITS.cancelAgainMs, undefined, { signal: ended }).catch(() => undefined);
  }
}

const QUERY_CANCELED = "57014";
const isCancelled = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === QUERY_CANCELED;
