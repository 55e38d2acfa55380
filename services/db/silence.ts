/**
 * Whether this process reaches PostgreSQL. A network may lose what one process sends to PostgreSQL while
 * another process reaches it. So a process that gets no answer from PostgreSQL does not report that it works on a
 * request, and its caller asks another process (`bus/exchange.ts`).
 */
import { DATABASE_LIMITS } from "./limits.ts";
import { answeredAtMs, type Database } from "./pool.ts";

/**
 * The error codes of a statement or a dial without an answer. Any other error is an answer, of PostgreSQL or of its
 * machine.
 */
const NO_ANSWER: ReadonlySet<unknown> = new Set([
  "database_deadline",
  "CONNECT_TIMEOUT",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "ETIMEDOUT",
]);

/**
 * The returned function checks whether PostgreSQL has not answered on this pool for `probeMs`. Each call starts a probe
 * when none is under way. A pool that answers other statements is busy and not silent.
 */
export function databaseSilence(database: Database): () => boolean {
  let askedAtMs: number | undefined;
  let isUnderWay = false;
  const ask = async (): Promise<void> => {
    isUnderWay = true;
    askedAtMs ??= performance.now();
    try {
      await database`select 1`;
      askedAtMs = undefined;
    } catch (error) {
      if (!NO_ANSWER.has((error as { readonly code?: unknown }).code)) askedAtMs = undefined;
    } finally {
      isUnderWay = false;
    }
  };
  return () => {
    if (!isUnderWay) void ask();
    const sinceMs = Math.max(askedAtMs ?? Number.POSITIVE_INFINITY, answeredAtMs(database));
    return performance.now() - sinceMs > DATABASE_LIMITS.probeMs;
  };
}
