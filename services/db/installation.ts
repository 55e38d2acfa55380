/** Which installation a database belongs to. */
import type { Installation } from "../bus/installation.ts";
import { UserError } from "../runtime/user-error.ts";
import { findMissingMigration } from "./migrate.ts";
import { closeDatabase, openDatabase } from "./pool.ts";

/**
 * Reads the row that the first migration has inserted and that every dump contains. Throws UserError
 * `database_not_migrated` when the schema is older than this program. A newer schema is accepted, because old processes
 * use it during an upgrade.
 */
export async function readInstallation(databaseUrl: string): Promise<Installation> {
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "installation" });
  try {
    const missing = await findMissingMigration(sql);
    if (missing !== undefined) {
      const sentence = `The database at ${nameDatabase(databaseUrl)} (DATABASE_URL) lacks the migration ${missing}: run \`npm run migrate\`, and start again.`;
      throw new UserError(sentence, { code: "database_not_migrated" });
    }
    const [row] = await sql<{ id: string }[]>`select id from installation`;
    if (row === undefined) throw new Error("The table installation is empty.");
    return { id: row.id, database: nameDatabase(databaseUrl) };
  } finally {
    await closeDatabase(sql);
  }
}

/** The number of station logs that the relay has found on the bus of this installation; undefined before its first check. */
export async function readLogCount(databaseUrl: string): Promise<number | undefined> {
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "logs" });
  try {
    const [row] = await sql<{ logs: number }[]>`
      select count(*)::int as logs from bus_marks where starts_with(stream, 'STATION_LOG_')`;
    return row?.logs === 0 ? undefined : row?.logs;
  } finally {
    await closeDatabase(sql);
  }
}

/** Host, port and name; never the user or the password. */
export function nameDatabase(databaseUrl: string): string {
  const { host, pathname, searchParams } = new URL(databaseUrl);
  return `${host || searchParams.get("host")}${pathname}`;
}
