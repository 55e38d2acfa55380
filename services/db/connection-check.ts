/**
 * Whether PostgreSQL has connections for all processes that use it. Each process says in the name of one connection how
 * many it may open in all, so that the sum is known before it is reached; PostgreSQL forgets it with the process.
 */
import { repeat } from "../runtime/repeat.ts";
import { UserError } from "../runtime/user-error.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { closeDatabase, type Database, openDatabase } from "./pool.ts";

export interface ConnectionCheck {
  readonly url: string;
  /** The services of this process. */
  readonly names: readonly string[];
  /** How many this process may open. */
  readonly connections: number;
  readonly log: { warn(fields: object, message: string): void };
}

const SAID = /^device-payments up to (\d+):/;
const TOO_MANY =
  "the processes may open more connections than PostgreSQL has: lower DATABASE_CONNECTIONS, or raise max_connections";

/**
 * Shows the others what this process may open until `release`, and warns once when all together may open more than there
 * are. Throws UserError `database_connections` when this process alone may.
 */
export async function checkConnections(check: ConnectionCheck): Promise<{ readonly release: () => Promise<void> }> {
  const { url, names, connections, log } = check;
  const applicationName = `device-payments up to ${connections}: ${names.join("+")}`;
  const sql = openDatabase({ url, maxConnections: 1, name: "process", applicationName });
  try {
    const available = await readAvailable(sql);
    if (connections > available) {
      const sentence = `PostgreSQL has ${available} connections for its clients, and this process may open ${connections}: set DATABASE_CONNECTIONS to less, or raise max_connections there.`;
      throw new UserError(sentence, { code: "database_connections" });
    }
    const said = await readSaid(sql);
    const sum = said.reduce((all, each) => all + each, 0);
    if (sum > available) log.warn({ connections: sum, available, processes: said.length }, TOO_MANY);
  } catch (error) {
    await closeDatabase(sql);
    throw error;
  }
  // A connection that is lost, or that nothing uses, would say nothing any more.
  const kept = repeat(
    { everyMs: DATABASE_LIMITS.saidMs, what: "showing the limit of connections", log },
    () => sql`select 1`,
  );
  return {
    async release() {
      await kept.stop();
      await closeDatabase(sql);
    },
  };
}

/** Without those that PostgreSQL keeps for administrators. */
async function readAvailable(sql: Database): Promise<number> {
  const [row] = await sql<[{ available: number }]>`
    select current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
           - coalesce(current_setting('reserved_connections', true)::integer, 0) as available`;
  return row.available;
}

/** What each process that is connected may open, this one included. */
async function readSaid(sql: Database): Promise<readonly number[]> {
  const rows = await sql<{ application_name: string }[]>`
    select application_name from pg_stat_activity where application_name like 'device-payments up to %'`;
  return rows.map((row) => Number(SAID.exec(row.application_name)?.[1] ?? 0));
}
