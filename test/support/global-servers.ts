import { join } from "node:path";
import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { findNatsServer, type NatsBinary } from "../../deploy/embedded/find-nats-server.ts";
import { ensureDatabase, startPostgres } from "../../deploy/embedded/postgres.ts";
import { buildPages } from "../../gateway/web/build.ts";
import { migrate } from "../../services/db/migrate.ts";
import { bundlePrograms } from "./bundled-programs/bundle.ts";
import { debianPrograms } from "./debian-programs.ts";
import { serverFolder, type TemporaryFolder } from "./temporary-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** An administrator's address on the run's PostgreSQL. */
    databaseAdminUrl: string;
    /** The migrated database that each test file clones. */
    databaseTemplate: string;
    /** The nats-server that each test file starts for itself. */
    natsBinary: NatsBinary;
  }
}

const TEMPLATE = "template_migrated";
const PASSWORD = "test";

function print(line: string): void {
  process.stderr.write(`${line}\n`);
}

interface Servers {
  readonly postgres: Awaited<ReturnType<typeof startPostgres>>;
  readonly natsBinary: NatsBinary;
  readonly folder: TemporaryFolder;
}

/** Each project of the run loads its own instance of this module, so the servers are kept on `globalThis`. */
const run = globalThis as { testServers?: { users: number; readonly started: Promise<Servers> } };

/** Starts one PostgreSQL with a migrated template database for the whole run. Each file starts its own NATS in milliseconds. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  run.testServers ??= { users: 0, started: startServers() };
  const { testServers } = run;
  testServers.users += 1;
  const { postgres: server, natsBinary, folder } = await testServers.started;
  project.provide("databaseAdminUrl", server.url("postgres"));
  project.provide("databaseTemplate", TEMPLATE);
  project.provide("natsBinary", natsBinary);
  return async () => {
    testServers.users -= 1;
    if (testServers.users > 0) return;
    delete run.testServers;
    await server.child.stop();
    folder.remove();
  };
}

async function startServers(): Promise<Servers> {
  const folder = serverFolder("run");
  const checkout = join(import.meta.dirname, "..", "..");
  process.env["NODE_COMPILE_CACHE"] ??= join(checkout, "node_modules", ".cache", "node-compile");
  const [programs, natsBinary, server] = await Promise.all([
    bundlePrograms(),
    findNatsServer({ environment: process.env, checkout, print }),
    startMigratedPostgres(folder.path),
    buildPages(),
    // Fetches the browser once for all browser tests, which begin at the same time. If this fails, they fail with the reason.
    debianPrograms("chromium-headless-shell").catch(() => undefined),
  ]);
  process.env["NODE_OPTIONS"] = [process.env["NODE_OPTIONS"], programs].filter(Boolean).join(" ");
  return { postgres: server, natsBinary, folder };
}

async function startMigratedPostgres(folder: string): Promise<Awaited<ReturnType<typeof startPostgres>>> {
  const server = await startPostgres({
    folder: join(folder, "postgres"),
    logFile: join(folder, "postgres.log"),
    password: PASSWORD,
    // The run's data is deleted at the end: the tests check what survives a killed process, not a power cut.
    // Several test files run at once, each with the pools of several processes.
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "300" },
  });
  await makeConnectingCheap(server.url("postgres"));
  await ensureDatabase(server.url("postgres"), TEMPLATE);
  await migrate({ databaseUrl: server.url(TEMPLATE), log: () => undefined });
  return server;
}

/** A run opens thousands of connections. A client spends milliseconds of CPU on hashing its password 4096 times for each. */
async function makeConnectingCheap(adminUrl: string): Promise<void> {
  const sql = postgres(adminUrl, { max: 1 });
  await sql.unsafe(`set scram_iterations = 1; alter role postgres password '${PASSWORD}'`);
  await sql.end();
}
