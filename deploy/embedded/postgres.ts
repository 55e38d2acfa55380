import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { UserError } from "../../services/runtime/user-error.ts";
import { type Child, describeExit, startChild } from "../child.ts";
import { deployLimits } from "../limits.ts";
import type { LogSpec } from "../log-files.ts";
import { freePort } from "./free-port.ts";
import { stopLeftover } from "./leftover.ts";
import { postgresAccount } from "./postgres-account.ts";
import { findPostgres } from "./postgres-binaries.ts";
import { folderArgument, POSTGRES_ENVIRONMENT, prepareCluster, SUPERUSER } from "./postgres-cluster.ts";

/** Written in full although most are defaults: durability is a promise of ours, not of a default. */
const SERVER_SETTINGS: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  // No socket file: its path may be too long, and the password on 127.0.0.1 is the one way in.
  unix_socket_directories: "",
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  max_connections: "100",
  log_timezone: "UTC",
  timezone: "UTC",
};

export interface PostgresOptions extends LogSpec {
  /** The data folder, made when missing. Its parent must exist. */
  folder: string;
  /** Of the superuser `postgres`; the data folder keeps the one it was made with. */
  password: string;
  /** A given port instead of a free one, to come back where clients redial. */
  port?: number | undefined;
  /** When it is aborted while the server starts, the server is ended again. */
  stopping?: AbortSignal;
  /** Server settings that differ from ours, for tests. */
  settings?: Record<string, string>;
}

/** A running PostgreSQL on 127.0.0.1. */
export interface PostgresServer {
  port: number;
  /** The address of one of its databases. */
  url: (database: string) => string;
  child: Child;
}

/**
 * Starts the embedded PostgreSQL on that data folder and waits until it accepts connections. Stops first one that a
 * killed start left running on it. Throws UserError with a `postgres_…` code.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const account = postgresAccount(options.folder);
  const binaries = await findPostgres(account);
  await prepareCluster({ ...options, binaries, account });
  const marker = clusterName(options.folder);
  await stopLeftover({ pidFile: join(options.folder, "postmaster.pid"), marker });

  const port = options.port ?? (await freePort());
  const settings = { ...SERVER_SETTINGS, ...options.settings, cluster_name: marker };
  const command = {
    command: binaries.postgres,
    args: [
      `-D${folderArgument(options.folder, account)}`,
      `-p${port}`,
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
    spawn: { ...account, cwd: options.folder, env: POSTGRES_ENVIRONMENT },
  };
  const deadlineMs = Date.now() + deployLimits.postgresRetryMs;
  for (;;) {
    const { folder, stopping } = options;
    const outcome = await launch({ ...command, folder, log: options, ...(stopping === undefined ? {} : { stopping }) });
    if ("child" in outcome) {
      return { port, url: (database) => databaseUrl(options.password, port, database), child: outcome.child };
    }
    // The children of a postmaster killed this moment hold its shared memory until they notice.
    if (!/shared memory block .* is still in use/.test(outcome.printed) || Date.now() > deadlineMs) {
      const reason = /FATAL:\s+(.*)/.exec(outcome.printed)?.[1] ?? outcome.end;
      throw new UserError(`PostgreSQL did not start: ${reason}; its log is ${options.logFile}.`, {
        code: "postgres_start_failed",
      });
    }
    await delay(deployLimits.readyPollMs);
  }
}

/** Names the data folder in the server's command line and in its process list, where a later start recognises it. */
function clusterName(folder: string): string {
  return `device_payments_${createHash("sha256").update(folder).digest("hex").slice(0, 16)}`;
}

function databaseUrl(password: string, port: number, database: string): string {
  return `postgres://${SUPERUSER}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}

interface Launch {
  command: string;
  args: string[];
  spawn: { uid?: number; gid?: number; cwd: string; env: NodeJS.ProcessEnv };
  folder: string;
  log: LogSpec;
  stopping?: AbortSignal;
}

async function launch(options: Launch): Promise<{ child: Child } | { end: string; printed: string }> {
  const child = await startChild({
    command: options.command,
    args: options.args,
    spawn: options.spawn,
    log: options.log,
    // PostgreSQL's fast shutdown: open transactions are rolled back, and a checkpoint is written.
    stopSignal: "SIGINT",
    stopMs: deployLimits.postgresStopMs,
    // Its immediate shutdown: the write-ahead log is replayed at the next start.
    immediateSignal: "SIGQUIT",
    orphanSignal: "INT",
  });

  const ended = new AbortController();
  void child.exited.then(() => ended.abort());
  const signal = AbortSignal.any([ended.signal, ...(options.stopping === undefined ? [] : [options.stopping])]);
  const ready = await Promise.race([child.exited, waitUntilReady(options.folder, child.pid, signal)]);
  if (ready === true) return { child };
  if (ready !== false) {
    await child.output.kept;
    return { end: describeExit(ready), printed: child.output.tail() };
  }
  if (options.stopping?.aborted === true) {
    await child.stop();
    throw new UserError("PostgreSQL was stopped while starting.", { code: "postgres_start_stopped" });
  }
  await child.kill();
  throw new UserError(
    `PostgreSQL was not ready within ${deployLimits.postgresReadyMs / 1000} s; its log is ${options.log.logFile}.`,
    { code: "postgres_start_timeout" },
  );
}

/** The postmaster writes its state into the eighth line of its pid file; pg_ctl waits in the same way. */
async function waitUntilReady(folder: string, pid: number, signal: AbortSignal): Promise<boolean> {
  const deadlineMs = Date.now() + deployLimits.postgresReadyMs;
  while (Date.now() < deadlineMs && !signal.aborted) {
    const lines = pidFileLines(join(folder, "postmaster.pid"));
    if (lines[0]?.trim() === String(pid) && lines[7]?.trim() === "ready") return true;
    await delay(deployLimits.readyPollMs);
  }
  return false;
}

function pidFileLines(path: string): string[] {
  try {
    return readFileSync(path, "utf8").split("\n");
  } catch {
    return [];
  }
}
