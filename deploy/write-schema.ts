/** Writes `services/db/schema.sql`: `npm run schema`, after a new migration. Starts a PostgreSQL for it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeSchema } from "../services/db/describe-schema.ts";
import { migrate } from "../services/db/migrate.ts";
import { closeDatabase, openDatabase } from "../services/db/pool.ts";
import { startPostgres } from "./embedded/postgres.ts";

const SCHEMA_FILE = join(import.meta.dirname, "..", "services", "db", "schema.sql");

const folder = await mkdtemp(join(tmpdir(), "device-payments-schema-"));
try {
  const server = await startPostgres({
    folder: join(folder, "postgres"),
    logFile: join(folder, "postgres.log"),
    password: "schema",
  });
  try {
    const databaseUrl = server.url("postgres");
    await migrate({ databaseUrl, log: () => undefined });
    const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "device-payments schema" });
    try {
      await writeFile(SCHEMA_FILE, await describeSchema(sql));
    } finally {
      await closeDatabase(sql);
    }
  } finally {
    await server.child.stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
