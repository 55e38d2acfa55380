/** Databases of several installations: those of tests are all cloned from one, and so belong to one. */
import { randomUUID } from "node:crypto";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { cloneDatabase, type TestDatabase } from "./servers.ts";

export interface TestInstallation extends TestDatabase {
  readonly id: string;
  /** The database as a sentence names it. */
  readonly name: string;
}

/** A database of an installation of its own. */
export async function newInstallation(): Promise<TestInstallation> {
  const [id, database] = [randomUUID(), await cloneDatabase()];
  const sql = openDatabase({ url: database.url, maxConnections: 1 });
  await sql`update installation set id = ${id}`;
  await closeDatabase(sql);
  const { host, pathname } = new URL(database.url);
  return { ...database, id, name: `${host}${pathname}` };
}
