/** Waits at a start until PostgreSQL has answered a first statement. Its error is one sentence about the cause. */
import { cannotBeUsed } from "../runtime/fault.ts";
import { errorCode, UserError } from "../runtime/user-error.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { openDatabase } from "./pool.ts";
import { DatabaseDeadlineError } from "./watched-database.ts";

interface ReachOptions {
  readonly url: string;
  /** How long to try. A starting system needs more time than a check of a running server. */
  readonly withinMs?: number;
  /** Ends the wait. */
  readonly signal?: AbortSignal;
}

/** PostgreSQL's error classes for which a retry does not help: a wrong password, no such database, no such role. */
const PERMANENT_CLASSES: readonly string[] = ["28", "3D"];

/**
 * Tries until PostgreSQL answers a statement. Throws UserError `database_unreachable` with the address, never the
 * password, when the time is over, and `start_stopped` when the signal is aborted.
 */
export async function reachDatabase(options: ReachOptions): Promise<void> {
  const { url, signal, withinMs = DATABASE_LIMITS.startDeadlineMs } = options;
  const sql = openDatabase({ url, maxConnections: 1, name: "start" });
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
  stopped.catch(() => undefined);
  const over = new AbortController();
  let lastError: unknown;
  const timer = setTimeout(() => stop(unreachable(url, lastError)), withinMs);
  const onAbort = (): void => stop(new UserError("The start was stopped.", { code: "start_stopped" }));
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted === true) onAbort();
  const answered = (async () => {
    while (!over.signal.aborted) {
      try {
        // The pool dials an unreachable server with pauses, so this is not a busy loop.
        await sql`select 1`;
        return;
      } catch (error) {
        lastError = error;
        if (PERMANENT_CLASSES.includes(errorCode(error).slice(0, 2))) throw unreachable(url, error);
        await new Promise((resolve) => setTimeout(resolve, DATABASE_LIMITS.redial.firstMs));
      }
    }
  })();
  try {
    await Promise.race([answered, stopped]);
  } finally {
    over.abort();
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    await sql.end({ timeout: 0 });
  }
}

function unreachable(url: string, cause: unknown): UserError {
  // When there was no error, the statement still waits for its answer.
  const error = cause ?? new DatabaseDeadlineError(DATABASE_LIMITS.startDeadlineMs);
  return new UserError(cannotBeUsed(`The PostgreSQL at ${addressOf(url)} (DATABASE_URL)`, error), {
    code: "database_unreachable",
    cause,
  });
}

/** Host and port, several separated by commas; never the user or the password. */
export function addressOf(url: string): string {
  return /^[^/]*\/\/(?:[^/]*@)?([^/?]*)/.exec(url)?.[1] ?? "";
}
