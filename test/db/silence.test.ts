/**
 * A network that loses all bytes between one of two processes and PostgreSQL, or refuses its connections: the other process
 * answers its requests.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { call, once, repeatable, serve } from "../../services/bus/operation.ts";
import { DATABASE_LIMITS } from "../../services/db/limits.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { requestClaims } from "../../services/db/request-claims.ts";
import { databaseSilence } from "../../services/db/silence.ts";
import { Link } from "../cluster/link.ts";
import { QUIET } from "../support/quiet-log.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";

const read = repeatable("test.silence.read", z.object({}), z.object({ copy: z.int() }));
const write = once("test.silence.write", z.object({}), z.object({ copy: z.int() }));
/** The longest answer of another process when one stalls (docs/operations.md, "When something fails"). */
const OTHER_ANSWERS_MS = 3_000;
const CONNECTIONS = 3;
/** The longest answer when both are refused: the longest pause between two dials, and the caller's wait for another process. */
const BOTH_REFUSED_MS = 2_000;
/** The time in which the test uses the second pool of the process, which cannot connect either. */
const REPLACED_MS = 1_500;
/** Longer than the pool needs to notice the silence, and shorter than the time-out of a statement. */
const BUSY_SECONDS = 1;

let nats: TestServer;
let target: TestDatabase;
/** Each process has a connection to the bus, a pool, and a link to PostgreSQL. */
const processes: { bus: Bus; database: Database; link: Link }[] = [];
let asked: number[] = [];

async function startProcess(copy: number): Promise<void> {
  const url = new URL(target.url);
  const link = await Link.open(Number(url.port));
  url.port = String(link.port);
  const bus = await connectBus({ url: nats.url, name: `process ${copy}`, log: QUIET });
  const database = openDatabase({ url: url.href, maxConnections: CONNECTIONS });
  processes.push({ bus, database, link });
  const isSilent = databaseSilence(database);
  const responder = { nc: bus.nc, log: QUIET, queue: "test", claim: requestClaims(database), isSilent };
  const answer = async (): Promise<{ copy: number }> => {
    asked.push(copy);
    await database`select 1`;
    return { copy };
  };
  serve(responder, read, answer);
  serve(responder, write, answer);
  serve(responder, busy, async () => {
    asked.push(copy);
    await database`select pg_sleep(${BUSY_SECONDS})`;
    return { copy };
  });
  await bus.nc.flush();
}

const busy = repeatable("test.silence.busy", z.object({}), z.object({ copy: z.int() }));
let caller: Bus;

beforeAll(async () => {
  [nats, target] = await Promise.all([startNats(), cloneDatabase()]);
  await startProcess(0);
  await startProcess(1);
  caller = await connectBus({ url: nats.url, name: "caller", log: QUIET });
});
afterEach(async () => {
  asked = [];
  for (const { link } of processes) link.join();
  // The pools use each connection once, so that they find a failed one here and not in the next test.
  for (const { database } of processes) {
    await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => database`select pg_sleep(0.02)`));
  }
});
afterAll(async () => {
  await caller.close();
  for (const { bus, database, link } of processes) {
    await closeDatabase(database);
    await bus.close();
    await link.close();
  }
  await nats.stop();
  await target.drop();
});

test("a process loses PostgreSQL until its pool is replaced: each request is answered by the other one in time", async () => {
  processes[0]?.link.cut();
  const untilMs = performance.now() + DATABASE_LIMITS.statementDeadlineMs + REPLACED_MS;
  while (performance.now() < untilMs) {
    const startedAtMs = performance.now();
    expect(await call(caller.nc, write, {})).toEqual({ copy: 1 });
    expect(performance.now() - startedAtMs).toBeLessThan(OTHER_ANSWERS_MS);
  }
});

test.each([
  ["what it sends", ["there"], [read, write]],
  // Here a write is left out: PostgreSQL may have its claim, and then no other process carries it out.
  ["what it receives", ["back"], [read]],
  ["both", ["there", "back"], [read, write]],
] as const)(
  "a process loses %s: each request is answered by the other one in time",
  async (_, directions, operations) => {
    processes[0]?.link.cut(directions);
    for (const operation of operations) {
      for (let count = 0; count < 6; count += 1) {
        const startedAtMs = performance.now();
        expect(await call(caller.nc, operation, {})).toEqual({ copy: 1 });
        expect(performance.now() - startedAtMs).toBeLessThan(OTHER_ANSWERS_MS);
      }
    }
    expect(new Set(asked)).toContain(1);
  },
);

describe("connections are refused", () => {
  const whileRefused = async (copies: readonly number[], work: () => Promise<void>): Promise<void> => {
    const links = processes.filter((_, copy) => copies.includes(copy)).map(({ link }) => link);
    for (const link of links) await link.refuse();
    try {
      await work();
    } finally {
      for (const link of links) await link.accept();
    }
  };
  const each = [read, write, read, write, read, write];

  test("those of one process: each request is answered by the other one in time, from the first on", async () => {
    await whileRefused([0], async () => {
      for (const operation of [...each, ...each]) {
        const startedAtMs = performance.now();
        expect(await call(caller.nc, operation, {})).toEqual({ copy: 1 });
        expect(performance.now() - startedAtMs).toBeLessThan(OTHER_ANSWERS_MS);
      }
    });
  });

  test("those of both processes: each request is answered `unavailable`, long before its deadline", async () => {
    await whileRefused([0, 1], async () => {
      for (const operation of each) {
        const startedAtMs = performance.now();
        await expect(call(caller.nc, operation, {})).rejects.toMatchObject({ refusal: { code: "unavailable" } });
        expect(performance.now() - startedAtMs).toBeLessThan(BOTH_REFUSED_MS);
      }
    });
  });

  test("the log-in is refused: the failed statement shows it, and then the state of the pool", async () => {
    const url = new URL(target.url);
    url.password = "wrong";
    const database = openDatabase({ url: url.href });
    const isSilent = databaseSilence(database);
    expect(isSilent()).toBe(false);
    expect(isSilent(await database`select 1`.catch((error: unknown) => error))).toBe(true);
    await expect.poll(() => isSilent()).toBe(true);
    await closeDatabase(database);
  });

  test("a statement is refused: PostgreSQL has answered", async () => {
    const { database } = processes[0] as (typeof processes)[number];
    const isSilent = databaseSilence(database);
    expect(isSilent(await database`select nothing`.catch((error: unknown) => error))).toBe(false);
  });
});

test("the process that lost PostgreSQL reaches it again: it answers again", async () => {
  processes[1]?.link.cut();
  expect(await call(caller.nc, read, {})).toEqual({ copy: 0 });
  processes[1]?.link.join();
  const copies = new Set<number>();
  for (let count = 0; count < 200 && copies.size < 2; count += 1) copies.add((await call(caller.nc, read, {})).copy);
  expect(copies).toEqual(new Set([0, 1]));
});

test("a statement takes long: the request stays with its process, because PostgreSQL answers other statements", async () => {
  await call(caller.nc, busy, {});
  expect(asked).toHaveLength(1);
});
