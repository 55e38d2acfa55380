/** The health that a service reports about a database that answers but cannot be used. */
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Bus } from "../../services/bus/connection.ts";
import { databaseClockCheck } from "../../services/db/database-clock.ts";
import { databaseHealth } from "../../services/db/health.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";
import { startPreparedBus, type TestBus } from "../support/start-bus.ts";

let prepared: TestBus;
let target: TestDatabase;
let bus: Bus;
let database: Database;
beforeAll(async () => {
  [prepared, target] = await Promise.all([startPreparedBus(), cloneDatabase()]);
  bus = prepared.bus;
  await bus.clock.measure();
  database = openDatabase({ url: target.url, maxConnections: 1 });
});
afterAll(async () => {
  await closeDatabase(database);
  await prepared.stop();
  await target.drop();
});

test("a read-only database: not ready, and ready when it accepts changes again", async () => {
  const health = databaseHealth(bus.nc, database);
  const ready = { databaseReady: true, fault: null, isDatabaseClockWrong: false };
  expect(await health()).toEqual(ready);
  await database`set default_transaction_read_only = on`;
  expect(await health()).toEqual({ databaseReady: false, fault: "database_unreachable" });
  await database`set default_transaction_read_only = off`;
  expect(await health()).toEqual(ready);
});

test("another database at the same address, or one without tables: not ready, and ready when the first one is back", async () => {
  const health = databaseHealth(bus.nc, database);
  const ready = { databaseReady: true, fault: null, isDatabaseClockWrong: false };
  const notReady = { databaseReady: false, fault: "database_unreachable" };
  const [first] = await database<{ id: string }[]>`select id from installation`;
  expect(await health()).toEqual(ready);
  await database`update installation set id = gen_random_uuid()`;
  expect(await health()).toEqual(notReady);
  await database`update installation set id = ${first?.id ?? ""}`;
  expect(await health()).toEqual(ready);
  await database`alter table installation rename to lost`;
  expect(await health()).toEqual(notReady);
  await database`alter table lost rename to installation`;
  expect(await health()).toEqual(ready);
});

/** Sets PostgreSQL's clock for the one connection of the pool: its `search_path` finds this function first. */
async function setClockBy(minutes: number): Promise<void> {
  await database`create schema if not exists shifted`;
  await database.unsafe(`
    create or replace function shifted.clock_timestamp() returns timestamptz language sql volatile
    as $$ select pg_catalog.clock_timestamp() + interval '${minutes} minutes' $$`);
  await database`set search_path = shifted, pg_catalog, public`;
}

test.each([5, -5])(
  "a database whose clock is wrong by %i minutes: ready, and reported; once in the log",
  async (minutes) => {
    const health = databaseHealth(bus.nc, database);
    const lines: string[] = [];
    const note = (_: object, text: string): void => void lines.push(text);
    const metrics = new Registry();
    const compare = databaseClockCheck({ clock: bus.clock, log: { info: note, warn: note }, metrics });
    await setClockBy(minutes);
    expect(await health()).toEqual({ databaseReady: true, fault: null, isDatabaseClockWrong: true });
    for (let count = 0; count < 3; count += 1) await compare(database);
    expect(lines).toEqual([expect.stringContaining("the clocks of PostgreSQL and of the bus differ")]);
    const [, aheadS] = /database_clock_ahead_seconds (-?\d\S*)/.exec(await metrics.metrics()) ?? [];
    expect(Number(aheadS) / 60).toBeCloseTo(minutes, 1);
    await database`reset search_path`;
    expect(await health()).toEqual({ databaseReady: true, fault: null, isDatabaseClockWrong: false });
    for (let count = 0; count < 3; count += 1) await compare(database);
    expect(lines.slice(1)).toEqual(["the clocks of PostgreSQL and of the bus agree again"]);
  },
);
