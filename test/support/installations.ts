/** Databases that belong to different installations. The tests' databases are clones of one, so they share its installation. */
import { randomUUID } from "node:crypto";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { cloneDatabase, type TestDatabase } from "./servers.ts";

export interface TestInstallation extends TestDatabase {
  readonly id: string;
  /** The name of the database in error messages. */
  readonly name: string;
}

/** Creates a database with a new installation id. */
export async function newInstallation(): Promise<TestInstallation> {
  const [id, database] = [randomUUID(), await cloneDatabase()];
  const sql = openDatabase({ url: database.url, maxConnections: 1 });
  await sql`update installation set id = ${id}`;
  await closeDatabase(sql);
  const { host, pathname } = new URL(database.url);
  return { ...database, id, name: `${host}${pathname}` };
}
