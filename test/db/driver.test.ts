/** Which statements fail when a connection to PostgreSQL fails, and which must not: see `patches/README.md`. */
import { once } from "node:events";
import type { Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeDatabase, type Database, openDatabase, type Transaction } from "../../services/db/pool.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";

const NAME = "broken now and then";
const ROUNDS = 20;
const CONNECTIONS = 4;

let database: TestDatabase;
let sql: Database;
let operator: Database;

beforeAll(async () => {
  database = await cloneDatabase();
  sql = openDatabase({ url: database.url, name: NAME, maxConnections: CONNECTIONS });
  operator = openDatabase({ url: database.url, maxConnections: 1 });
});
afterAll(async () => {
  await Promise.all([closeDatabase(sql), closeDatabase(operator)]);
  await database.drop();
});

const cut = () =>
  operator`select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = ${`device-payments ${NAME}`} and datname = current_database()`;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a transaction whose connection is cut", () => {
  it("it fails, and neither its rollback nor its next statement is sent", async () => {
    await sql`create table notes (note text)`;
    const transaction = sql.begin(async (tx) => {
      await tx`insert into notes values ('first')`;
      await cut();
      // After this, the pool has replaced the connection.
      await expect.poll(async () => (await sql`select 1 as up`.catch(() => []))[0]).toEqual({ up: 1 });
      await tx`insert into notes values ('second')`;
    });
    await expect(transaction).rejects.toThrow(/CONNECTION_CLOSED|terminating connection/);
    await turn();
    expect(await sql`select note from notes`).toEqual([]);
  });
});

describe("a COPY that PostgreSQL refuses", () => {
  const copied = async (tx: Transaction, text: string): Promise<void> => {
    const stream: Writable = await tx.unsafe("copy copied (id) from stdin").writable();
    const finished = once(stream, "finish");
    stream.end(text);
    await finished;
  };

  it.each(["at its end: a duplicate key", "in its middle: a text instead of a number"])(
    "%s: the stream and the transaction fail",
    async (title) => {
      await sql`create table if not exists copied (id int primary key)`;
      const text = title.startsWith("at its end") ? "1\n1\n" : `${"2\n".repeat(100_000)}none\n`;
      const transaction = sql.begin((tx) => copied(tx, text));
      await expect(transaction).rejects.toThrow(/duplicate key|invalid input/);
      expect(await sql`select id from copied`).toEqual([]);
      await sql.begin((tx) => copied(tx, "3\n"));
      expect(await sql`delete from copied returning id`).toEqual([{ id: 3 }]);
    },
  );
});

describe("connections that are cut at any moment", () => {
  it("queries without an answer fail, no query gets another's answer, and the pool replaces all connections", async () => {
    const wrong: unknown[] = [];
    const ask = async (question: number, on: Database | Transaction): Promise<void> => {
      const [row] = await on<{ answer: number }[]>`select ${question}::int as answer`;
      if (row?.answer !== question) wrong.push({ question, row });
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      const statements = Array.from({ length: 40 }, async (_, index) => {
        for (let turns = 0; turns < index % 4; turns += 1) await turn();
        if (index % 2 === 0) return await ask(index, sql);
        await sql.begin(async (tx) => {
          await ask(index, tx);
          await ask(index + 1_000, tx);
        });
      });
      await Promise.all([cut(), Promise.allSettled(statements)]);
    }
    expect(wrong).toEqual([]);
    await expect.poll(() => sql`select 1`.catch(() => undefined)).toBeDefined();
    const startedAtMs = performance.now();
    const backends = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => sql<{ pid: number }[]>`select pg_sleep(0.1), pg_backend_pid() as pid`),
    );
    expect(new Set(backends.map(([row]) => row?.pid)).size).toBe(CONNECTIONS);
    // The limit is below five seconds, the time after which a connection that cannot send is closed.
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
  });
});
