/** The reconciliation process gets SIGTERM while it works: it ends within a second, and another process completes the work. */
import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { startGatewayProcess } from "../gateway/gateway-process.ts";
import { type KillableProcess, startKillable } from "../money/killable-process.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";

const STOPPED_WITHIN_MS = 1_000;
const SOON = { timeout: 60_000, interval: 20 };
const LONG_MS = 120_000;
const HEADER = "line,payment_id,reference,account,amount,currency,paid_at";
/** Eight batches: the process is stopped within the first ones. */
const MANY_LINES = 40_000;

let system: TestSystem;
let service: KillableProcess;
let operator: Person;
let sql: postgres.Sql;
let holder: postgres.ReservedSql;

beforeAll(async () => {
  system = await startSystem({ services: ["registry", "settlement", "providers", "audit", "relay"] });
  service = await startKillable(["reconciliation"], {
    NATS_URL: system.nats.url,
    DATABASE_URL: system.database.url,
  });
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  operator = await addOperator(system.baseUrl, owner);
  sql = postgres(system.database.url, { max: 2, onnotice: () => undefined });
  holder = await sql.reserve();
});
/** Releases the test's lock, so that another process can do the work. */
afterEach(async () => {
  await holder`rollback`;
});
afterAll(async () => {
  holder.release();
  await sql.end();
  await service.kill9();
  await system.stop();
});

async function openAccount(): Promise<number> {
  const reference = randomUUID();
  const facts = { provider: "sandbox", reference, name: reference, mode: "test", currency: "EUR" };
  const body = { ...facts, settlement_delay_days: 0 };
  return (await operator.good<{ account_id: number }>("POST", "accounts/", { body })).account_id;
}

async function upload(accountId: number, lines: number): Promise<number> {
  const [account] = await sql<{ reference: string }[]>`
    select reference from statement_accounts where account_id = ${accountId}`;
  const rows = Array.from(
    { length: lines },
    (_, index) => `${index + 1},p${index},int_${index},${account?.reference},12.50,EUR,2026-11-01T10:00:00.000Z`,
  );
  const path = `accounts/${accountId}/imports/?file_name=statement.csv&format=sandbox&encoding=utf-8`;
  const answer = await fetch(`${system.baseUrl}/api/reconciliation/v1/${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${operator.token}`,
      "content-type": "application/octet-stream",
      "idempotency-key": randomUUID(),
    },
    body: `${[HEADER, ...rows].join("\n")}\n`,
  });
  const text = await answer.text();
  expect([200, 201, 202], text).toContain(answer.status);
  return (JSON.parse(text) as { import_id: number }).import_id;
}

const importOf = async (importId: number) =>
  (
    await sql`select status, attempts, records::int, lines_new::int from statement_imports where import_id = ${importId}`
  )[0];

const newestRun = async (accountId: number) =>
  (
    await sql`select status, failure, started_by::int from reconciliation_runs where account_id = ${accountId} order by run_id desc limit 1`
  )[0];

/** An upload whose client sends a chunk from time to time; resolves with the response. */
function sendSlowly(baseUrl: string, accountId: number): Promise<{ readonly status: number; readonly text: string }> {
  const path = `/api/reconciliation/v1/accounts/${accountId}/imports/?file_name=slow.csv&format=sandbox&encoding=utf-8`;
  const headers = {
    authorization: `Bearer ${operator.token}`,
    "content-type": "application/octet-stream",
    "content-length": 1_000_000,
    "idempotency-key": randomUUID(),
  };
  return new Promise((resolve, reject) => {
    const sending = request(`${baseUrl}${path}`, { method: "POST", headers });
    const timer = setInterval(() => sending.write("x".repeat(100)), 100);
    sending.once("close", () => clearInterval(timer));
    sending.once("error", reject);
    sending.once("response", (answer) => {
      void answer
        .setEncoding("utf8")
        .reduce((text: string, piece: string) => text + piece, "")
        .then((text) => resolve({ status: answer.statusCode ?? 0, text }), reject);
    });
  });
}

/** SIGTERM; returns how long the process took to end. */
async function stop(): Promise<number> {
  const startedAtMs = performance.now();
  await service.stop();
  return performance.now() - startedAtMs;
}

/** What the process has left running in PostgreSQL. */
const leftRunning = () => sql`
  select query from pg_stat_activity where application_name like 'device-payments reconciliation%' and state <> 'idle'
    and datname = current_database()`;

/** The running statements of the service that store lines. */
const storing = () => sql`
  select pid from pg_stat_activity where application_name like 'device-payments reconciliation%' and state = 'active'
    and query ilike 'copy%' and datname = current_database()`;

describe("SIGTERM", { timeout: LONG_MS }, () => {
  test("while a run works: the run ends as failed, and another run is done after it", async () => {
    const accountId = await openAccount();
    const importId = await upload(accountId, 2);
    await vi.waitFor(async () => expect(await importOf(importId)).toMatchObject({ status: "imported" }), SOON);
    await vi.waitFor(async () => expect(await newestRun(accountId)).toMatchObject({ status: "done" }), SOON);
    // Runs of the organization wait for this lock.
    await holder`begin`;
    await holder`select pg_advisory_xact_lock(hashtextextended('reconciliation of ' || organization_id, 0))
      from statement_accounts where account_id = ${accountId}`;
    await operator.good("POST", "runs/", { body: { account_id: accountId } });
    expect(await newestRun(accountId)).toMatchObject({ status: "running", started_by: operator.userId });
    expect(await stop()).toBeLessThan(STOPPED_WITHIN_MS);
    const failure = "The process of the run has stopped; another run of these days starts by itself.";
    expect(await newestRun(accountId)).toMatchObject({ status: "failed", failure });
    expect(await leftRunning()).toHaveLength(0);
    await service.restart();
    await holder`rollback`;
    await vi.waitFor(async () => expect(await newestRun(accountId)).toMatchObject({ status: "done" }), SOON);
  });

  test("while an import waits for its account: the import waits again at once, and no attempt is counted", async () => {
    const accountId = await openAccount();
    await holder`begin`;
    await holder`select from statement_accounts where account_id = ${accountId} for no key update`;
    const importId = await upload(accountId, 2);
    await vi.waitFor(async () => expect(await importOf(importId)).toMatchObject({ status: "importing" }), SOON);
    expect(await stop()).toBeLessThan(STOPPED_WITHIN_MS);
    expect(await importOf(importId)).toMatchObject({ status: "waiting", attempts: 0 });
    expect(await leftRunning()).toHaveLength(0);
    await service.restart();
    await holder`rollback`;
    await vi.waitFor(
      async () => expect(await importOf(importId)).toMatchObject({ status: "imported", lines_new: 2 }),
      SOON,
    );
  });

  test("while an import stores lines: the next process stores each once", async () => {
    const accountId = await openAccount();
    const importId = await upload(accountId, MANY_LINES);
    await vi.waitFor(async () => expect(await storing()).toHaveLength(1), { ...SOON, interval: 5 });
    expect(await stop()).toBeLessThan(STOPPED_WITHIN_MS);
    expect(await importOf(importId)).toMatchObject({ status: "waiting", attempts: 0 });
    await service.restart();
    const imported = { status: "imported", lines_new: MANY_LINES };
    await vi.waitFor(async () => expect(await importOf(importId)).toMatchObject(imported), SOON);
  });
});

test("the gateway is stopped during an upload: the response asks its client to upload again", async () => {
  const gateway = await startGatewayProcess(system.nats.url);
  const answer = sendSlowly(gateway.baseUrl, await openAccount());
  await delay(500);
  expect(await gateway.stop()).toBe(0);
  const { status, text } = await answer;
  expect(status).toBe(503);
  expect(JSON.parse(text)).toMatchObject({ code: "unavailable" });
});
