import { closeDatabase, type Database, type DatabaseOptions, openDatabase } from "../../services/db/pool.ts";
import { cloneDatabase } from "./servers.ts";

export interface OpenClone {
  readonly url: string;
  readonly sql: Database;
  /** Closes the pool and drops the clone. */
  readonly stop: () => Promise<void>;
}

/** A clone of the migrated template for one test file, with a pool. */
export async function openClone(options: Omit<DatabaseOptions, "url"> = {}): Promise<OpenClone> {
  const { url, drop } = await cloneDatabase();
  const sql = openDatabase({ ...options, url });
  return {
    url,
    sql,
    stop: async () => {
      await closeDatabase(sql);
      await drop();
    },
  };
}
