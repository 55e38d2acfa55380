import { join } from "node:path";
import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { findNatsServer, type NatsBinary } from "../../deploy/embedded/find-nats-server.ts";
import { ensureDatabase, startPostgres } from "../../deploy/embedded/postgres.ts";
import { buildPages } from "../../gateway/web/build.ts";
import { migrate } from "../../services/db/migrate.ts";
import { bundlePrograms } from "./bundled-programs/bundle.ts";
import { debianPrograms } from "./debian-programs.ts";
import { serverFolder } from "./temporary-folder.ts";

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

/** Starts one PostgreSQL with a migrated template database for the whole run. NATS is started per file, which takes milliseconds. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = serverFolder("run");
  const checkout = join(import.meta.dirname, "..", "..");
  process.env["NODE_COMPILE_CACHE"] ??= join(checkout, "node_modules", ".cache", "node-compile");
  process.env["NODE_OPTIONS"] = [process.env["NODE_OPTIONS"], await bundlePrograms()].filter(Boolean).join(" ");
  await buildPages();
  // Once for all browser tests, which begin at the same time. A failure here fails there, with its reason.
  const browser = debianPrograms("chromium").catch(() => undefined);
  const natsBinary = await findNatsServer({ environment: process.env, checkout, print });
  const server = await startPostgres({
    folder: join(folder.path, "postgres"),
    logFile: join(folder.path, "postgres.log"),
    password: PASSWORD,
    // The run's data is thrown away: the tests check what survives a killed process, not a power cut.
    // Several test files at once have the pools of several processes each.
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "300" },
  });
  await makeConnectingCheap(server.url("postgres"));
  await ensureDatabase(server.url("postgres"), TEMPLATE);
  await migrate({ databaseUrl: server.url(TEMPLATE), log: () => undefined });
  await browser;
  project.provide("databaseAdminUrl", server.url("postgres"));
  project.provide("databaseTemplate", TEMPLATE);
  project.provide("natsBinary", natsBinary);
  return async () => {
    await server.child.stop();
    folder.remove();
  };
}

/** A run opens thousands of connections. A client spends milliseconds of CPU on hashing its password 4096 times for each. */
async function makeConnectingCheap(adminUrl: string): Promise<void> {
  const sql = postgres(adminUrl, { max: 1 });
  await sql.unsafe(`set scram_iterations = 1; alter role postgres password '${PASSWORD}'`);
  await sql.end();
}
