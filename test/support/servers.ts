import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import postgres from "postgres";
import { inject } from "vitest";
import { startNats as startNatsServer } from "../../deploy/embedded/nats.ts";
import { startPostgres as startPostgresServer } from "../../deploy/embedded/postgres.ts";
import { freePort } from "./free-port.ts";
import { stall } from "./stall.ts";
import { serverFolder } from "./temporary-folder.ts";

/** A server that a test may kill and start again on the same port with the same data. */
export interface TestServer {
  url: string;
  port: number;
  /** Where its data is. */
  folder: string;
  /** Shuts it down cleanly and removes its data. */
  stop: () => Promise<void>;
  /** Shuts it down cleanly and keeps its data for `restart`. */
  halt: () => Promise<void>;
  /** SIGKILL: nothing is flushed. Resolves when the process has ended. */
  kill9: () => Promise<void>;
  /** SIGSTOP stalls the server, SIGCONT lets it continue. After SIGSTOP, returns only when the server has stopped. */
  signal: (signal: NodeJS.Signals) => void;
  /** The same for the server and its child processes, such as PostgreSQL's process for each connection. */
  signalAll: (signal: NodeJS.Signals) => void;
  /** Starts it again after `halt` or `kill9`. Resolves when it answers. */
  restart: () => Promise<void>;
}

/**
 * Starts a nats-server with JetStream for this test only. `url` contains its token: `nats://<token>@127.0.0.1:<port>`.
 * `path` names a program that runs nats-server in another way, for example under a tracer.
 */
export async function startNats({ path }: { path?: string | undefined } = {}): Promise<TestServer> {
  const folder = serverFolder("nats");
  const options = {
    binary: { ...inject("natsBinary"), ...(path === undefined ? {} : { path }) },
    folder: join(folder.path, "nats"),
    logFile: join(folder.path, "nats-server.log"),
    token: randomBytes(12).toString("hex"),
  };
  const server = await startNatsServer({ ...options, port: await freePort() });
  const facts = { ...server, folder: options.folder };
  return killable(facts, folder.remove, () => startNatsServer({ ...options, port: server.port }));
}

/** Starts an empty PostgreSQL for a test that kills it. Other tests clone a database, which takes much less time. */
export async function startPostgres({ settings }: { settings?: Record<string, string> } = {}): Promise<TestServer> {
  const folder = serverFolder("postgres");
  const options = {
    folder: join(folder.path, "postgres"),
    logFile: join(folder.path, "postgres.log"),
    password: randomBytes(12).toString("hex"),
    ...(settings === undefined ? {} : { settings }),
  };
  const server = await startPostgresServer({ ...options, port: await freePort() });
  const facts = { ...server, url: server.url("postgres"), folder: options.folder };
  return killable(facts, folder.remove, () => startPostgresServer({ ...options, port: server.port }));
}

type Killable = Pick<Awaited<ReturnType<typeof startNatsServer>>, "child" | "port">;

type Facts = Killable & Pick<TestServer, "url" | "folder">;

function killable(first: Facts, remove: () => void, again: () => Promise<Killable>): TestServer {
  let child = first.child;
  return {
    url: first.url,
    port: first.port,
    folder: first.folder,
    stop: async () => {
      await child.stop();
      remove();
    },
    halt: async () => {
      await child.stop();
    },
    kill9: async () => {
      await child.kill();
    },
    signal: (signal) => signalIfRunning(child.pid, signal),
    signalAll: (signal) => {
      // Signals the server first: a stopped server starts no process that the list of its children would lack.
      signalIfRunning(child.pid, signal);
      for (const pid of childrenOf(child.process.pid)) signalIfRunning(pid, signal);
    },
    restart: async () => {
      ({ child } = await again());
    },
  };
}

/** Ignores a process that has ended since it was listed, such as PostgreSQL's process of a closed connection. */
function signalIfRunning(pid: number, signal: NodeJS.Signals): void {
  try {
    if (signal === "SIGSTOP") stall(pid);
    else process.kill(pid, signal);
  } catch (error) {
    if (!["ESRCH", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

function childrenOf(parent: number | undefined): number[] {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  return rows.flatMap((row) => {
    const [pid, parentPid] = row.trim().split(/\s+/).map(Number);
    return pid !== undefined && parentPid === parent ? [pid] : [];
  });
}

/** A database of one test. */
export interface TestDatabase {
  url: string;
  /** Drops it and ends its open connections. */
  drop: () => Promise<void>;
}

/** Clones the migrated template on the run's PostgreSQL: about 50 ms. */
export const cloneDatabase = (): Promise<TestDatabase> => createDatabase(inject("databaseTemplate"));

/** A database without tables on the run's PostgreSQL, for tests that migrate it. */
export const createEmptyDatabase = (): Promise<TestDatabase> => createDatabase("template1");

/** Copies a database of `cloneDatabase` to which no client is connected. */
export const copyDatabase = ({ url }: Pick<TestDatabase, "url">): Promise<TestDatabase> =>
  createDatabase(new URL(url).pathname.slice(1));

async function createDatabase(template: string): Promise<TestDatabase> {
  const adminUrl = inject("databaseAdminUrl");
  const name = `test_${randomBytes(8).toString("hex")}`;
  // Copying the files takes less time than writing them to the write-ahead log, which no test reads.
  await administrate(adminUrl, (sql) => sql`create database ${sql(name)} template ${sql(template)} strategy file_copy`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => administrate(adminUrl, (sql) => sql`drop database if exists ${sql(name)} with (force)`),
  };
}

/** A connection without the product's statement timeout, because these statements copy and delete hundreds of files. */
async function administrate(adminUrl: string, work: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
