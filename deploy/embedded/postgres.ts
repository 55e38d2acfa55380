/** The embedded PostgreSQL: its data folder, its start and its databases. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chownSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { reasonOf } from "../../services/runtime/fault.ts";
import { errorCode, UserError } from "../../services/runtime/user-error.ts";
import { makeFolder } from "../bootstrap/folders.mjs";
import { type Child, describeExit, startChild, stopLeftover, untilReady } from "../child.ts";
import { deployLimits } from "../limits.ts";
import type { LogSpec } from "../log-files.ts";
import { freePort } from "../ports.ts";
import { findPostgres, type PostgresAccount, type PostgresBinaries, postgresAccount } from "./postgres-binaries.ts";

const SUPERUSER = "postgres";

/** PostgreSQL gets none of our variables except PATH, and a locale in which this program can read its log. */
const ENVIRONMENT = { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/** Written in full although most are defaults: we promise durability, and it must not depend on a default. */
const SERVER_SETTINGS: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  // No socket file: its path may be too long. Clients connect to 127.0.0.1 with the password.
  unix_socket_directories: "",
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  max_connections: "100",
  log_timezone: "UTC",
  timezone: "UTC",
};

interface PostgresOptions extends LogSpec {
  /** The data folder, made when missing. Its parent must exist. */
  folder: string;
  /** The password of the superuser `postgres`. An existing data folder keeps its password. */
  password: string;
  /** This port instead of a free one, so that a restarted server listens where its clients reconnect. */
  port?: number | undefined;
  /** When it is aborted while the server starts, the server is ended again. */
  stopping?: AbortSignal;
  /** Server settings that differ from ours, for tests. */
  settings?: Record<string, string>;
}

/** A running PostgreSQL on 127.0.0.1. */
interface PostgresServer {
  port: number;
  /** The address of one of its databases. */
  url: (database: string) => string;
  child: Child;
}

/**
 * Starts the embedded PostgreSQL on that data folder and waits until it accepts connections. First stops a server that a
 * killed start has left running on this folder. Throws UserError with a `postgres_…` code.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const { folder, password, logFile } = options;
  const account = postgresAccount(folder);
  const binaries = await findPostgres(account);
  await prepareCluster({ ...options, binaries, account });
  // Names the data folder in the server's command line and in its process list, where a later start recognises it.
  const marker = `device_payments_${createHash("sha256").update(folder).digest("hex").slice(0, 16)}`;
  await stopLeftover({ pidFile: join(folder, "postmaster.pid"), marker });

  const port = options.port ?? (await freePort());
  const settings = { ...SERVER_SETTINGS, ...options.settings, cluster_name: marker };
  const args = [
    `-D${folderArgument(folder, account)}`,
    `-p${port}`,
    ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
  const deadlineMs = Date.now() + deployLimits.postgresRetryMs;
  for (;;) {
    const child = await startChild({
      command: binaries.postgres,
      args,
      spawn: { ...account, cwd: folder, env: ENVIRONMENT },
      log: options,
      // PostgreSQL's fast shutdown: open transactions are rolled back, and a checkpoint is written.
      stopSignal: "SIGINT",
      stopMs: deployLimits.postgresStopMs,
      // Its immediate shutdown: the write-ahead log is replayed at the next start.
      immediateSignal: "SIGQUIT",
      orphanSignal: "INT",
    });
    const exit = await untilReady(child, {
      name: "PostgreSQL",
      code: "postgres_start",
      logFile,
      timeoutMs: deployLimits.postgresReadyMs,
      stopping: options.stopping,
      isReady: () => isReady(folder, child.pid),
    });
    if (exit === undefined) {
      const server = `postgres://${SUPERUSER}:${encodeURIComponent(password)}@127.0.0.1:${port}`;
      return { port, url: (database) => `${server}/${database}`, child };
    }
    await child.output.logged;
    const printed = child.output.tail();
    // The children of a postmaster that was just killed hold its shared memory until they notice its end.
    if (!/shared memory block .* is still in use/.test(printed) || Date.now() > deadlineMs) {
      const reason = /FATAL:\s+(.*)/.exec(printed)?.[1] ?? describeExit(exit);
      throw new UserError(`PostgreSQL did not start: ${reason}; its log is ${logFile}.`, {
        code: "postgres_start_failed",
      });
    }
    await delay(deployLimits.readyPollMs);
  }
}

/** The postmaster writes its state into the eighth line of its pid file; pg_ctl waits in the same way. */
function isReady(folder: string, pid: number): boolean {
  try {
    const lines = readFileSync(join(folder, "postmaster.pid"), "utf8").split("\n");
    return lines[0]?.trim() === String(pid) && lines[7]?.trim() === "ready";
  } catch {
    return false;
  }
}

/**
 * The path by which PostgreSQL opens its data folder. An account other than ours may not be able to open the real path (a
 * checkout below /root, a private .data), but it can use the folder as its working directory.
 */
function folderArgument(folder: string, account: PostgresAccount | undefined): string {
  return account === undefined ? folder : "/proc/self/cwd";
}

interface ClusterOptions {
  binaries: PostgresBinaries;
  account: PostgresAccount | undefined;
  folder: string;
  password: string;
  /** When it is aborted while initdb runs, initdb is ended. */
  stopping?: AbortSignal;
}

/**
 * Makes the data folder when there is none. Throws UserError `postgres_other_version` for one of another major version,
 * and `postgres_init_failed`.
 */
async function prepareCluster(options: ClusterOptions): Promise<void> {
  const { folder, account, binaries } = options;
  const versionFile = join(folder, "PG_VERSION");
  if (existsSync(versionFile)) {
    const version = Number.parseInt(readFileSync(versionFile, "utf8"), 10);
    if (version === binaries.majorVersion) return;
    throw new UserError(
      `The data folder ${folder} belongs to PostgreSQL ${version}, and this is PostgreSQL ${binaries.majorVersion}; move it over with pg_dump of the old version, or choose another folder with DATA_DIR.`,
      { code: "postgres_other_version" },
    );
  }
  // The new folder is renamed when it is complete, so that an interrupted start leaves no incomplete database.
  const incoming = `${folder}.new`;
  rmSync(incoming, { recursive: true, force: true });
  makeFolder(incoming, 0o700);
  if (account !== undefined) chownSync(incoming, account.uid, account.gid);
  await runInitdb({ ...options, folder: incoming });
  rmSync(folder, { recursive: true, force: true });
  renameSync(incoming, folder);
}

async function runInitdb({ binaries, account, folder, password, stopping }: ClusterOptions): Promise<void> {
  const secretFolder = mkdtempSync(join(tmpdir(), "postgres-"));
  try {
    const passwordFile = join(secretFolder, "password");
    writeFileSync(passwordFile, password, { mode: 0o600 });
    if (account !== undefined) {
      for (const path of [passwordFile, secretFolder]) chownSync(path, account.uid, account.gid);
    }
    const args = [
      `--pgdata=${folderArgument(folder, account)}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // The built-in provider sorts the same on every machine, whatever locales it has.
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--no-instructions",
    ];
    await promisify(execFile)(binaries.initdb, args, {
      ...account,
      cwd: folder,
      env: ENVIRONMENT,
      timeout: deployLimits.postgresInitMs,
      ...(stopping === undefined ? {} : { signal: stopping }),
    });
  } catch (error) {
    const output = error instanceof Error && "stderr" in error ? String(error.stderr) : "";
    const reason = /(?:error|FATAL):\s+(.*)/.exec(output)?.[1] ?? reasonOf(error);
    throw new UserError(`The database folder ${folder} could not be made: ${reason}.`, {
      code: "postgres_init_failed",
      cause: error,
    });
  } finally {
    rmSync(secretFolder, { recursive: true, force: true });
  }
}

/** PostgreSQL's code for a wrong password. */
const INVALID_PASSWORD = "28P01";

/** Makes the database when it is missing. `adminUrl` leads to another database of the same server. Throws UserError `postgres_password_lost`. */
export async function ensureDatabase(adminUrl: string, name: string): Promise<void> {
  const sql = openDatabase({ url: adminUrl, maxConnections: 1, name: "device-payments start" });
  try {
    const found = await sql`select 1 from pg_database where datname = ${name}`;
    if (found.length === 0) await sql`create database ${sql(name)}`;
  } catch (error) {
    if (errorCode(error) !== INVALID_PASSWORD) throw error;
    throw new UserError(
      'The password in secrets.json does not open the database of the data folder: restore that file; where it is lost, follow "When a secret is lost" in docs/operations.md.',
      { code: "postgres_password_lost", cause: error },
    );
  } finally {
    await closeDatabase(sql);
  }
}
