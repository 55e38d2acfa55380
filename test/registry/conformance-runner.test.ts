/** The process of a conformance run by API: the runner stores its lines, and the run ends when the suite ends. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { ConformanceRunner } from "../../services/registry/conformance-runner.ts";
import type { RegistryDeps } from "../../services/registry/deps.ts";
import { deleteOlderRuns, startConformanceRun } from "../../services/registry/sql/conformance-runs.ts";
import { createLog } from "../../services/runtime/log.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";

let database: TestDatabase;
let sql: Database;
/** The runner's connections to the database. A test breaks them. */
let sqlOfRunner: Database;
beforeAll(async () => {
  database = await cloneDatabase();
  // One test holds a lock for some seconds.
  const longestWorkMs = 60_000;
  const limits = { longestWorkMs, idleInTransactionMs: longestWorkMs };
  sql = openDatabase({ url: database.url, name: "runner test", maxConnections: 2, ...limits });
  sqlOfRunner = openDatabase({ url: database.url, name: "runner", maxConnections: 2 });
});
afterAll(async () => {
  await Promise.all([closeDatabase(sql), closeDatabase(sqlOfRunner)]);
  await database.drop();
});

const NOWHERE = "http://127.0.0.1:9";
let sandboxId = 0;

/** Starts a run; its process first runs the module. Resolves to the run's row when the runner has ended the run. */
async function ended(baseUrl: string, module: string, begun: (runId: number) => Promise<void> = async () => undefined) {
  sandboxId += 1;
  const runId = await sql.begin(async (tx) => {
    // No check needs the run's organization, sandbox or owner, so they do not exist.
    await tx`set local session_replication_role = replica`;
    const [row] = await tx<[{ run_id: number }]>`
      insert into conformance_runs (organization_id, sandbox_id, user_id, session_id, leased_until)
      values (1, ${sandboxId}, 1, 1, now() + interval '1 minute') returning run_id`;
    return row.run_id;
  });
  const log = createLog({ service: "test", level: "silent" });
  const deps = { sql: sqlOfRunner, log, settings: { CONFORMANCE_BASE_URL: baseUrl } } as unknown as RegistryDeps;
  const runner = new ConformanceRunner(deps, {
    PATH: process.env["PATH"],
    NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --import=data:text/javascript,${encodeURIComponent(module)}`,
  });
  const onEnd = vi.fn(async () => undefined);
  runner.start({ runId, sandboxId, token: "t", onEnd });
  await begun(runId);
  await vi.waitFor(() => expect(onEnd).toHaveBeenCalledOnce(), { timeout: 60_000 });
  const [row] = await sql<{ status: string; checks: { id: string }[] }[]>`
    select status, checks from conformance_runs where run_id = ${runId}`;
  return row;
}

test("a new run: the oldest runs are deleted, so that their number stays within the limit", async () => {
  const runs = await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    const facts = { organizationId: 2, userId: 1, sessionId: 1, leaseMs: 60_000 };
    for (let sandbox = 1; sandbox <= 4; sandbox += 1) {
      await tx`update conformance_runs set status = 'passed', ended_at = now() where organization_id = 2`;
      await startConformanceRun(tx, { ...facts, sandboxId: sandbox });
      await deleteOlderRuns(tx, 2, 3);
    }
    return await tx`select sandbox_id from conformance_runs where organization_id = 2 order by run_id`;
  });
  expect(runs.map((run) => run["sandbox_id"])).toEqual([2, 3, 4]);
});

test("a line that is not JSON: ignored, and the run ends", async () => {
  const row = await ended(NOWHERE, `process.stdout.write("traced\\n");`);
  expect(row).toEqual({ status: "could_not_run", checks: [] });
});

test("connections that break, also after the suite's end: no check is lost or stored twice, and the end is stored", async () => {
  const ids = ["one", "two", "three"];
  const checkLine = (id: string): string =>
    JSON.stringify({ check: { id, capability: "presence", outcome: "passed", duration_ms: 1, sentences: [] } });
  const prints = ids.map((id) => `console.log(${JSON.stringify(checkLine(id))}); await delay(300);`);
  const module = `import { setTimeout as delay } from "node:timers/promises"; ${prints.join(" ")}`;
  const broken = new Set<number>();
  const row = await ended(NOWHERE, module, async (runId) => {
    await sql.begin(async (tx) => {
      await tx`select from conformance_runs where run_id = ${runId} for update`;
      await vi.waitFor(
        async () => {
          // This query is not part of the transaction, which always sees the processes of its first query.
          const ends = await sql<{ pid: number }[]>`
            select pid, pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name = 'device-payments runner' and wait_event_type = 'Lock'`;
          for (const { pid } of ends) broken.add(pid);
          expect(broken.size).toBeGreaterThanOrEqual(6);
        },
        { timeout: 30_000, interval: 100 },
      );
    });
  });
  expect([row?.status, row?.checks.map(({ id }) => id)]).toEqual(["could_not_run", ids]);
});

/** A service that accepts the session also after its end, and that never answers a reset. */
async function startKeepingService(onReset: () => Promise<void>): Promise<Server> {
  const server = createServer((request, response) => {
    const { method, url = "" } = request;
    if (url.endsWith("/reset/")) return void onReset();
    response.writeHead(url.endsWith("/session/") ? (method === "DELETE" ? 204 : 200) : 404);
    response.end(method === "DELETE" ? undefined : "{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

test("a run that its owner ends before its result: `left_behind` when the service keeps something", async () => {
  const server = await startKeepingService(async () => {
    await sql`update conformance_runs set end_asked_at = now() where status = 'running'`;
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await ended(baseUrl, "")).toMatchObject({ status: "left_behind" });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
