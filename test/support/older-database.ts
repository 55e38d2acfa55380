/** A database as an older program has left it, for tests of what a migration makes of it. */
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const MIGRATIONS = join(import.meta.dirname, "..", "..", "services", "db", "migrations");

export interface OlderDatabase {
  readonly url: string;
  readonly sql: Database;
  /** Makes it what the program was that had not the migrations from `before` on. */
  migrateAsBefore(): Promise<void>;
  /** An organization, filial and station, each with the id 1. */
  addStation(currency: string): Promise<void>;
  stop(): Promise<void>;
}

/** Empty at first; `before` is the number of the first migration that the older program had not, such as `0014`. */
export async function createOlderDatabase(before: string): Promise<OlderDatabase> {
  const name = `before_${before}_${process.pid}`;
  const folder = temporaryFolder("older-migrations");
  for (const file of readdirSync(MIGRATIONS).filter((migration) => migration < before)) {
    copyFileSync(join(MIGRATIONS, file), join(folder.path, file));
  }
  const admin = openDatabase({ url: inject("databaseAdminUrl"), maxConnections: 1 });
  await admin`create database ${admin(name)}`;
  const address = new URL(inject("databaseAdminUrl"));
  address.pathname = `/${name}`;
  const url = address.href;
  const sql = openDatabase({ url, maxConnections: 1 });
  return {
    url,
    sql,
    migrateAsBefore: async () => {
      await migrate({ databaseUrl: url, log: () => undefined, folder: folder.path });
    },
    async addStation(currency) {
      await sql`insert into organizations (name) values ('Old')`;
      await sql`insert into filials (organization_id, name) values (1, 'Old')`;
      await sql`insert into stations (organization_id, filial_id, name, currency) values (1, 1, 'Old', ${currency})`;
    },
    async stop() {
      await closeDatabase(sql);
      await admin`drop database ${admin(name)} with (force)`;
      await closeDatabase(admin);
      folder.remove();
    },
  };
}
