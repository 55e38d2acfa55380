/**
 * Writes generated files: `npm run settings` after a change of settings, `npm run schema` after a new migration. `npm run
 * openapi` is in `gateway/http/documents/write-documents.ts`.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeSchema } from "../services/db/describe-schema.ts";
import { migrate } from "../services/db/migrate.ts";
import { closeDatabase, openDatabase } from "../services/db/pool.ts";
import { startPostgres } from "./embedded/postgres.ts";
import { settingsDocuments } from "./settings-documents.ts";

const SCHEMA_FILE = join(import.meta.dirname, "..", "services", "db", "schema.sql");

/** `docs/settings.md` and the example of an environment file. */
async function writeSettings(): Promise<void> {
  for (const { path, text } of await settingsDocuments()) await writeFile(path, text);
}

/** `services/db/schema.sql`, from a temporary PostgreSQL that this function starts. */
async function writeSchema(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "device-payments-schema-"));
  try {
    const logFile = join(folder, "postgres.log");
    const server = await startPostgres({ folder: join(folder, "postgres"), logFile, password: "schema" });
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
}

await (process.argv[2] === "schema" ? writeSchema() : writeSettings());
