/**
 * Migrates a database to this program's schema with numbered SQL files, forward only, each in a separate transaction.
 * Programs that migrate at the same time take turns. A program refuses a newer schema and does not change it.
 */
import { readdir } from "node:fs/promises";
import { join, parse } from "node:path";
import { UserError } from "../runtime/user-error.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import { isLockTimeout } from "./lock-timeout.ts";
import { type Database, openDatabase } from "./pool.ts";

const MIGRATIONS_FOLDER = join(import.meta.dirname, "migrations");
/** The oldest release that an installation was run with, from `migrate` to the conformance suite. */
const OLDEST_POSTGRESQL = 15;

interface MigrateOptions {
  readonly databaseUrl: string;
  /** Receives one line for each applied migration. */
  readonly log: (line: string) => void;
  /** Ends the wait. PostgreSQL rolls back a migration under way when this process ends. */
  readonly signal?: AbortSignal;
  /** Another folder of migrations, for tests. */
  readonly folder?: string;
}

/**
 * Applies the missing migrations and returns their names. Throws UserError `postgres_too_old`, `schema_newer` when the
 * database knows a migration that this program does not, `migration_locked` when another program does not finish,
 * `start_stopped` when the signal is aborted.
 */
export async function migrate(options: MigrateOptions): Promise<readonly string[]> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  stopped.catch(() => undefined);
  const stop = (): void => reject(new UserError("The start was stopped.", { code: "start_stopped" }));
  options.signal?.addEventListener("abort", stop, { once: true });
  if (options.signal?.aborted === true) stop();
  try {
    return await Promise.race([migrateAll(options), stopped]);
  } finally {
    options.signal?.removeEventListener("abort", stop);
  }
}

async function migrateAll(options: MigrateOptions): Promise<readonly string[]> {
  const folder = options.folder ?? MIGRATIONS_FOLDER;
  await refuseUnusable(options.databaseUrl, folder);
  const applied = await run(options.databaseUrl, folder);
  // Checks again: a newer program may have migrated while this one waited for the lock.
  await refuseUnusable(options.databaseUrl, folder);
  for (const name of applied) options.log(`applied migration ${name}`);
  return applied;
}

async function run(databaseUrl: string, folder: string): Promise<readonly string[]> {
  // Imported here, because the services import this file and do not need the runner.
  const { runner } = await import("node-pg-migrate");
  try {
    const migrations = await runner({
      databaseUrl: {
        connectionString: databaseUrl,
        application_name: "device-payments migrate",
        lock_timeout: DATABASE_LIMITS.migrationLockTimeoutMs,
        connectionTimeoutMillis: DATABASE_LIMITS.connectTimeoutSeconds * 1_000,
        query_timeout: DATABASE_LIMITS.migrationStatementMs,
        keepAlive: true,
        keepAliveInitialDelayMillis: DATABASE_LIMITS.keepAliveIdleSeconds * 1_000,
      },
      dir: folder,
      direction: "up",
      migrationsTable: "schema_migrations",
      advisoryLockMode: "wait",
      // Each migration commits separately, so that a migration can opt out of its transaction.
      singleTransaction: false,
      // The caller logs the progress, and the runner throws an error with PostgreSQL's message.
      logger: { info: ignore, warn: ignore, error: ignore, debug: ignore },
    });
    return migrations.map((migration) => migration.name);
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    throw new UserError("Another program has been changing this database's schema for too long; read its log.", {
      code: "migration_locked",
      cause: error,
    });
  }
}

async function refuseUnusable(databaseUrl: string, folder: string): Promise<void> {
  const sql = openDatabase({ url: databaseUrl, maxConnections: 1, name: "migrate" });
  try {
    const [row] = await sql<[{ version: number }]>`select current_setting('server_version_num')::integer as version`;
    refuseOldPostgresql(row.version);
    await refuseNewerSchema(sql, folder);
  } finally {
    await sql.end({ timeout: DATABASE_LIMITS.closeTimeoutSeconds });
  }
}

/** The version as `server_version_num` has it, such as 180004. Throws UserError `postgres_too_old`. */
export function refuseOldPostgresql(version: number): void {
  const major = Math.floor(version / 10_000);
  if (major >= OLDEST_POSTGRESQL) return;
  throw new UserError(
    `The PostgreSQL of DATABASE_URL has the version ${major}, and this service needs ${OLDEST_POSTGRESQL} or newer: upgrade it, or set DATABASE_URL to another one.`,
    { code: "postgres_too_old" },
  );
}

async function refuseNewerSchema(sql: Database, folder: string): Promise<void> {
  const known = new Set((await readdir(folder)).map((file) => parse(file).name));
  const unknown = (await appliedMigrations(sql)).find((name) => !known.has(name));
  if (unknown === undefined) return;
  throw new UserError(
    `The database was written by a newer version of this program (it has ${unknown}); start that version, or use another database.`,
    { code: "schema_newer" },
  );
}

/**
 * The first migration of this program that the database lacks; undefined when it has all. A newer schema has further
 * migrations.
 */
export async function findMissingMigration(sql: Database): Promise<string | undefined> {
  const known = (await readdir(MIGRATIONS_FOLDER)).map((file) => parse(file).name).toSorted();
  const applied = new Set(await appliedMigrations(sql));
  return known.find((name) => !applied.has(name));
}

/** In their order; none in a new database. */
async function appliedMigrations(sql: Database): Promise<readonly string[]> {
  const [table] = await sql<{ present: boolean }[]>`
    select to_regclass('public.schema_migrations') is not null as present`;
  if (table?.present !== true) return [];
  const applied = await sql<{ name: string }[]>`select name from public.schema_migrations order by id`;
  return applied.map(({ name }) => name);
}

function ignore(): void {}
