/** No call waits for ever, also with a stalled server, which does not apply its time-outs. */
import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { closeDatabase, type Database } from "../../services/db/pool.ts";
import { watchDatabase } from "../../services/db/watched-database.ts";
import { startPostgres, type TestServer } from "../support/servers.ts";

const DEADLINE_MS = 300;

let server: TestServer;
const opened: Database[] = [];
beforeAll(async () => {
  server = await startPostgres();
});
afterEach(async () => {
  server.signalAll("SIGCONT");
  await Promise.all(opened.splice(0).map(closeDatabase));
});
afterAll(() => server.stop());

function open(connections: number): { sql: Database; replacements: () => number } {
  let replacements = -1;
  const sql = watchDatabase({
    open: () => {
      replacements += 1;
      return postgres(server.url, {
        max: connections,
        onnotice: () => undefined,
        types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
      });
    },
    statementDeadlineMs: DEADLINE_MS,
    transactionDeadlineMs: DEADLINE_MS,
    onAnswered: () => undefined,
  });
  opened.push(sql);
  return { sql, replacements: () => replacements };
}

const late = { code: "database_deadline" };

test("a statement without an answer: fails, and new connections answer the next ones", async () => {
  const { sql, replacements } = open(2);
  await sql`select 1`;
  server.signalAll("SIGSTOP");
  await expect(Promise.race([sql`select 2`, wait(5 * DEADLINE_MS)])).rejects.toMatchObject(late);
  expect(replacements()).toBe(1);
  server.signalAll("SIGCONT");
  expect(await sql`select ${3}::int as n`).toMatchObject([{ n: 3 }]);
});

test("a transaction without an answer, at its begin or at a later statement: fails", async () => {
  const { sql } = open(1);
  await sql`select 1`;
  const within = sql.begin(async (tx) => {
    server.signalAll("SIGSTOP");
    await Promise.all([tx`select ${1}::int`, tx`select ${2}::int`]);
  });
  const before = sql.begin(async (tx) => await tx`select 1`);
  const outcomes = Promise.allSettled([within, before]);
  const both = await Promise.race([outcomes, wait(5 * DEADLINE_MS)]);
  expect(both).toMatchObject([{ status: "rejected" }, { status: "rejected" }]);
});

test("a transaction that waits too long for a connection: fails and does nothing later; the pool is not replaced", async () => {
  const { sql, replacements } = open(1);
  await sql`create table notes (note text)`;
  const transactions = Array.from({ length: 40 }, () =>
    sql.begin(async (tx) => {
      await tx`select pg_sleep(0.02)`;
      await tx`insert into notes values ('done')`;
    }),
  );
  const outcomes = await Promise.allSettled(transactions);
  const done = outcomes.filter(({ status }) => status === "fulfilled").length;
  expect(done).toBeGreaterThan(3);
  expect(done).toBeLessThan(37);
  await wait(2 * DEADLINE_MS);
  expect(await sql`select note from notes`).toHaveLength(done);
  expect(replacements()).toBe(0);
});

test("parts of statements and lists of values: no deadline, because they are no calls; a failed statement fails", async () => {
  const { sql, replacements } = open(1);
  const part = sql`where ${true}`;
  expect(await sql`select * from (values ${sql([[1, 2]])}) as t (a, b) ${part}`).toMatchObject([{ a: "1", b: "2" }]);
  await expect(sql`select nonsense`.execute()).rejects.toMatchObject({ code: "42703" });
  expect(await sql.unsafe("select 1 as n")).toMatchObject([{ n: 1 }]);
  await wait(2 * DEADLINE_MS);
  expect(replacements()).toBe(0);
});

test("the end of the pool: fails the stalled transaction", async () => {
  const { sql } = open(1);
  await sql`select 1`;
  const waiting = sql.begin(async (tx) => {
    server.signalAll("SIGSTOP");
    await Promise.all([tx`select ${1}::int`, tx`select ${2}::int`]);
  });
  const outcome = waiting.then(String, String);
  await wait(50);
  await sql.end({ timeout: 0 });
  expect(await Promise.race([outcome, wait(DEADLINE_MS / 2).then(() => "still waiting")])).toMatch(/ended|DESTROYED/);
});
