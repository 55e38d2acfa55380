/** How often a pool dials a server or a pooler that accepts connections and does not serve them. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, type TestContext, test } from "vitest";
import { DATABASE_LIMITS } from "../../services/db/limits.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { type Fault, type FaultyServer, startFaultyServer } from "../support/faulty-server.ts";
import { cloneDatabase } from "../support/servers.ts";

const OBSERVED_MS = 1_200;
const CALLERS = 20;
/** The number of dials with the shortest possible random pauses: 25, 50, 100, 200 and 400 ms, then 500 ms each. */
const MOST_DIALS = 6;

type Cleanup = Pick<TestContext, "onTestFinished">;

async function pooler(cleanup: Cleanup, url: string, fault: Fault): Promise<{ server: FaultyServer; sql: Database }> {
  const server = await startFaultyServer(url, fault);
  cleanup.onTestFinished(() => server.stop());
  const sql = openDatabase({ url: server.url });
  cleanup.onTestFinished(() => closeDatabase(sql));
  return { server, sql };
}

async function clone(cleanup: Cleanup): Promise<string> {
  const database = await cloneDatabase();
  cleanup.onTestFinished(() => database.drop());
  return database.url;
}

/** Like services, several callers send the next statement 20 ms after each answer. Returns their errors. */
async function askRepeatedly(sql: Database, forMs: number): Promise<Error[]> {
  const errors: Error[] = [];
  const untilMs = performance.now() + forMs;
  const ask = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      await sql`select 1`.catch((error: unknown) => errors.push(error as Error));
      await delay(20);
    }
  };
  const asking = Promise.all(Array.from({ length: CALLERS }, ask));
  await Promise.race([asking, delay(forMs)]);
  return errors;
}

const NOWHERE = "postgres://user:hidden@127.0.0.1:1/nothing";

describe.concurrent("a pooler that accepts connections", () => {
  test("and closes them: the dials are bounded, and each call fails with a sentence that has the address", async (context) => {
    const { server, sql } = await pooler(context, NOWHERE, "close");
    const errors = await askRepeatedly(sql, OBSERVED_MS);
    context.expect(server.dials()).toBeGreaterThan(3);
    context.expect(server.dials()).toBeLessThanOrEqual(MOST_DIALS);
    context.expect(errors.length).toBeGreaterThanOrEqual(CALLERS);
    for (const { message } of errors) {
      context.expect(message).toContain(`127.0.0.1:${server.port}`);
      context.expect(message).not.toContain("hidden");
    }
  });

  test.for(["silent", "ready then silent"] as const)("and is %s: the dials are bounded", async (fault, context) => {
    const { server, sql } = await pooler(context, NOWHERE, fault);
    await askRepeatedly(sql, OBSERVED_MS);
    context.expect(server.dials()).toBeGreaterThan(3);
    context.expect(server.dials()).toBeLessThanOrEqual(MOST_DIALS);
  });

  test("and refuses the log-in: the dials are bounded", async (context) => {
    const wrong = new URL(await clone(context));
    wrong.password = "wrong";
    const { server, sql } = await pooler(context, wrong.href, "none");
    const errors = await askRepeatedly(sql, OBSERVED_MS);
    context.expect(server.dials()).toBeLessThanOrEqual(MOST_DIALS);
    context.expect(errors[0]).toMatchObject({ code: "28P01" });
  });

  test("and then works again: the pool is up within its longest pause, with all its connections", async (context) => {
    const { server, sql } = await pooler(context, await clone(context), "close");
    await askRepeatedly(sql, OBSERVED_MS);
    server.become("none");
    const startedAtMs = performance.now();
    await context.expect
      .poll(() => sql`select 1 as up`.catch(() => []), { interval: 20, timeout: 15_000 })
      .toEqual([{ up: 1 }]);
    context.expect(performance.now() - startedAtMs).toBeLessThan(DATABASE_LIMITS.redial.longestMs + 500);
    const most = DATABASE_LIMITS.maxConnections;
    const backends = async (): Promise<number> => {
      const rows = await Promise.all(
        Array.from({ length: most }, () => sql<{ pid: number }[]>`select pg_sleep(0.05), pg_backend_pid() as pid`),
      );
      return new Set(rows.map(([row]) => row?.pid)).size;
    };
    // While connections are being opened, statements may share a connection.
    await context.expect.poll(backends, { timeout: 15_000 }).toBe(most);
  });
});

describe.concurrent("a pool that ends while it waits to dial", () => {
  test("does not dial again, and its waiting calls fail", async (context) => {
    const { server, sql } = await pooler(context, NOWHERE, "close");
    await askRepeatedly(sql, 500);
    const waiting = sql`select 1`.then(
      () => "answered",
      () => "failed",
    );
    const startedAtMs = performance.now();
    await closeDatabase(sql);
    context.expect(await waiting).toBe("failed");
    context.expect(performance.now() - startedAtMs).toBeLessThan(DATABASE_LIMITS.closeTimeoutSeconds * 1_000 + 300);
    const dials = server.dials();
    await delay(DATABASE_LIMITS.redial.longestMs + 100);
    context.expect(server.dials()).toBe(dials);
  });
});
