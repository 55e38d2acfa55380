/** Transactions that a stopping process ends: PostgreSQL cancels their statement and stores nothing of them. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeDatabase, type Database, openDatabase, type Transaction } from "../../services/db/pool.ts";
import { stoppable, WorkStoppedError } from "../../services/db/stoppable.ts";
import { copyRows } from "../../services/reconciliation/sql/store-lines.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";

const ENDED_WITHIN_MS = 1_000;

let clone: TestDatabase;
let database: Database;
let canceller: Database;
beforeAll(async () => {
  clone = await cloneDatabase();
  database = openDatabase({ ...HOLDS_LOCKS, url: clone.url, maxConnections: 2 });
  canceller = openDatabase({ url: clone.url, maxConnections: 1 });
  await database`create table written (what text)`;
  await database.unsafe(`
    create function wait_a_minute() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$;
    create trigger slow before insert on statement_line_sources for each row execute function wait_a_minute();`);
});
afterAll(async () => {
  await Promise.all([closeDatabase(database), closeDatabase(canceller)]);
  await clone.drop();
});

/** Stops the process when the work has begun. Returns the work's error, and the time until its end. */
async function stopDuring(work: (tx: Transaction) => Promise<unknown>): Promise<{ error: unknown; tookMs: number }> {
  const stopping = new AbortController();
  const begun = Promise.withResolvers<void>();
  const ended = stoppable(database, { stopping: stopping.signal, canceller })
    .begin(async (tx) => {
      await tx`insert into written values ('a row')`;
      begun.resolve();
      return await work(tx);
    })
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  await begun.promise;
  await delay(100);
  const stoppedAtMs = performance.now();
  stopping.abort();
  return { error: await ended, tookMs: performance.now() - stoppedAtMs };
}

/** Sends so many bytes that the transfer takes some time. */
async function copyMany(tx: Transaction): Promise<void> {
  const stream = await tx.unsafe("copy written from stdin").writable();
  const finished = once(stream, "finish");
  stream.end("a row\n".repeat(5_000_000));
  await finished;
}

test.each<[string, (tx: Transaction) => Promise<unknown>]>([
  ["in a statement", (tx) => tx`select pg_sleep(60)`],
  ["in a statement that copies rows", (tx) => copyRows(tx, "sources", ["1\t1\t1"])],
  ["while it sends rows", (tx) => copyMany(tx)],
  [
    "between two statements",
    async (tx) => {
      await delay(300);
      await tx`select pg_sleep(60)`;
    },
  ],
])("a transaction that is stopped %s: it ends at once and stores nothing", async (_, work) => {
  const { error, tookMs } = await stopDuring(work);
  expect(error).toBeInstanceOf(WorkStoppedError);
  expect(tookMs).toBeLessThan(ENDED_WITHIN_MS);
  expect(await database`select from written`).toHaveLength(0);
});

test("after the stop: no transaction begins, and the pool serves other statements", async () => {
  const stopped = stoppable(database, { stopping: AbortSignal.abort(), canceller });
  await expect(stopped.begin(async (tx) => tx`select 1`)).rejects.toBeInstanceOf(WorkStoppedError);
  expect(await stopped`select 1 as one`).toEqual([{ one: 1 }]);
});
