/**
 * Whether this process reaches PostgreSQL. A network may lose or refuse what one process sends to PostgreSQL while
 * another process reaches it. So a process that gets no answer from PostgreSQL does not report that it works on a
 * request, and its caller asks another process (`bus/exchange.ts`).
 */
import { CONNECTION_CODES } from "../bus/outage.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { answeredAtMs, type Database } from "./pool.ts";

/**
 * The returned function checks whether PostgreSQL has not answered on this pool for `probeMs`, or whether the last probe
 * had no connection. Each call starts a probe when none is under way. A pool that answers other statements is busy and
 * not silent. With the error of a request, it is also true when this request had no connection.
 */
export function databaseSilence(database: Database): (error?: unknown) => boolean {
  /** When the first of the probes without an answer began. */
  let askedAtMs: number | undefined;
  let hasFailed = false;
  let isUnderWay = false;
  const ask = async (): Promise<void> => {
    isUnderWay = true;
    askedAtMs ??= performance.now();
    await database`select 1`.catch(() => undefined);
    hasFailed = answeredAtMs(database) < askedAtMs;
    if (!hasFailed) askedAtMs = undefined;
    isUnderWay = false;
  };
  return (error) => {
    if (!isUnderWay) void ask();
    if (isWithoutConnection(error)) return true;
    const sinceMs = Math.max(askedAtMs ?? Number.POSITIVE_INFINITY, answeredAtMs(database));
    return (hasFailed && sinceMs === askedAtMs) || performance.now() - sinceMs > DATABASE_LIMITS.probeMs;
  };
}

/** PostgreSQL refuses a session, or ends it, with a higher severity than that of a refused statement. */
function isWithoutConnection(error: unknown): boolean {
  const { code, severity = "ERROR" } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  return severity !== "ERROR" || CONNECTION_CODES.has(code);
}
