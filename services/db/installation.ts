/** Which installation a database belongs to. */
import type { Installation } from "../bus/installation.ts";
import { closeDatabase, openDatabase } from "./pool.ts";

/** Reads the row that the first migration of the database has made, and that every dump carries. */
export async function readInstallation(databaseUrl: string): Promise<Installation> {
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "device-payments installation" });
  try {
    const [row] = await sql<{ id: string }[]>`select id from installation`;
    if (row === undefined) throw new Error("The table installation is empty.");
    return { id: row.id, database: nameDatabase(databaseUrl) };
  } finally {
    await closeDatabase(sql);
  }
}

/** Host, port and name; never the user or the password. */
function nameDatabase(databaseUrl: string): string {
  const { host, pathname, searchParams } = new URL(databaseUrl);
  return `${host || searchParams.get("host")}${pathname}`;
}
