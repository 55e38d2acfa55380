/** A process that hangs within a transaction, like a stopped or swapped-out process: other processes still get its locks. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { DATABASE_LIMITS } from "../../services/db/limits.ts";
import { credentialKey, insertOutbox } from "../../services/db/outbox.ts";
import { closeDatabase, type Database, openDatabase, type Transaction } from "../../services/db/pool.ts";
import { openClone } from "../support/open-clone.ts";

const LOCK = 4_711;
/** The mark in the last statement that reaches PostgreSQL. */
const MARK = "the_last_one";

let url: string;
let others: Database;
beforeAll(async () => {
  const clone = await openClone();
  ({ url, sql: others } = clone);
  return clone.stop;
});

/** A pool of a process that hangs when PostgreSQL has received the mark: after that, it sends nothing. */
async function openHanging(mark = MARK): Promise<{ readonly pool: Database; readonly hasHung: Promise<void> }> {
  const sockets = new Set<Socket>();
  const target = new URL(url);
  const { promise: hasHung, resolve: hang } = Promise.withResolvers<void>();
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    let hangs = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
    }
    upstream.pipe(client);
    client.on("data", (chunk: Buffer) => {
      if (hangs) return;
      upstream.write(chunk);
      if (!chunk.includes(mark)) return;
      hangs = true;
      hang();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const own = new URL(url);
  own.port = String((server.address() as AddressInfo).port);
  const pool = openDatabase({ url: own.href, maxConnections: 1 });
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await closeDatabase(pool);
    server.close();
  });
  return { pool, hasHung };
}

const STATEMENTS: Readonly<Record<string, (tx: Transaction) => Promise<unknown>>> = {
  "a statement without values": (tx) => tx`select 1 as the_last_one`,
  "a statement that its connection sees for the first time": (tx) => tx`select ${1}::int as the_last_one`,
};

test.each(Object.entries(STATEMENTS))(
  "a transaction that hangs after %s: its locks are released while others still wait for them",
  async (_name, last) => {
    const { pool, hasHung } = await openHanging();
    const hung = pool.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${LOCK})`;
      await last(tx);
      await tx`select 2`;
    });
    const failed = expect(hung).rejects.toThrow();
    await hasHung;
    // PostgreSQL would end the other transaction's wait with an error after `lockTimeoutMs`.
    expect(DATABASE_LIMITS.idleInTransactionTimeoutMs).toBeLessThan(DATABASE_LIMITS.lockTimeoutMs);
    await others.begin((tx) => tx`select pg_advisory_xact_lock(${LOCK})`);
    await failed;
  },
);

test("several hung transactions that wait for one lock: another process waits only for the first of them", async () => {
  const key = credentialKey(4_711);
  const insert = (tx: Transaction) => insertOutbox(tx, { key, kind: "credential_delete", hash: "0".repeat(64) });
  const failures: Promise<void>[] = [];
  // The first transaction holds the lock. The others hang when they have requested it.
  for (const mark of [MARK, key, key]) {
    const { pool, hasHung } = await openHanging(mark);
    const hung = pool.begin(async (tx) => {
      await insert(tx);
      await tx`select 1 as the_last_one`;
    });
    failures.push(expect(hung).rejects.toThrow());
    await hasHung;
  }
  await others.begin(insert);
  await Promise.all(failures);
  const rows = await others`select from outbox`;
  expect(rows).toHaveLength(1);
});
