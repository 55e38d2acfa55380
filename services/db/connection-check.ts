/**
 * Whether PostgreSQL has connections for all processes that use it. Each process shows how many it may open in the name
 * of one of its connections. So the sum is known before the processes reach it, and PostgreSQL forgets the name when
 * the process ends.
 */
import { repeat } from "../runtime/repeat.ts";
import { UserError } from "../runtime/user-error.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { closeDatabase, type Database, openDatabase } from "./pool.ts";

interface ConnectionCheck {
  readonly url: string;
  /** The services of this process. */
  readonly names: readonly string[];
  /** How many this process may open. */
  readonly connections: number;
  readonly log: { warn(fields: object, message: string): void };
  /** What this process does at intervals with the connection that shows the number. */
  readonly use: (database: Database) => Promise<unknown>;
}

const SHOWN_LIMIT = /^device-payments up to (\d+):/;
const TOO_MANY =
  "the processes may open more connections than PostgreSQL has: lower DATABASE_CONNECTIONS, or raise max_connections";

/**
 * Shows other processes how many connections this process may open, until `release`. Logs one warning when all
 * processes together may open more than PostgreSQL has. Throws UserError `database_connections` when this process alone
 * may open more.
 */
export async function checkConnections(check: ConnectionCheck): Promise<{ readonly release: () => Promise<void> }> {
  const { url, names, connections, log, use } = check;
  const applicationName = `device-payments up to ${connections}: ${names.join("+")}`;
  const sql = openDatabase({ url, maxConnections: 1, name: "process", applicationName });
  try {
    const available = await readAvailable(sql);
    if (connections > available) {
      const sentence = `PostgreSQL has ${available} connections for its clients, and this process may open ${connections}: set DATABASE_CONNECTIONS to less, or raise max_connections there.`;
      throw new UserError(sentence, { code: "database_connections" });
    }
    const limits = await readShownLimits(sql);
    const sum = limits.reduce((all, each) => all + each, 0);
    if (sum > available) log.warn({ connections: sum, available, processes: limits.length }, TOO_MANY);
  } catch (error) {
    await closeDatabase(sql);
    throw error;
  }
  // Its statement opens a lost connection again, and the pool does not close a connection that is in use.
  const kept = repeat(
    { everyMs: DATABASE_LIMITS.showConnectionsMs, what: "showing the limit of connections", log },
    () => use(sql),
  );
  return {
    async release() {
      await kept.stop();
      await closeDatabase(sql);
    },
  };
}

/** PostgreSQL's connections, without those that it reserves for administrators. */
async function readAvailable(sql: Database): Promise<number> {
  const [row] = await sql<[{ available: number }]>`
    select current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
           - coalesce(current_setting('reserved_connections', true)::integer, 0) as available`;
  return row.available;
}

/** How many connections each connected process may open, this one included. */
async function readShownLimits(sql: Database): Promise<readonly number[]> {
  const rows = await sql<{ application_name: string }[]>`
    select application_name from pg_stat_activity where application_name like 'device-payments up to %'`;
  return rows.map((row) => Number(SHOWN_LIMIT.exec(row.application_name)?.[1] ?? 0));
}
