/** The health that a service reports about a database that answers but cannot be used. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { databaseHealth } from "../../services/db/health.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { QUIET } from "../support/quiet-log.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";

let nats: TestServer;
let target: TestDatabase;
let bus: Bus;
let database: Database;
beforeAll(async () => {
  [nats, target] = await Promise.all([startNats(), cloneDatabase()]);
  bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
  database = openDatabase({ url: target.url, maxConnections: 1 });
});
afterAll(async () => {
  await closeDatabase(database);
  await bus.close();
  await nats.stop();
  await target.drop();
});

test("a read-only database: not ready, and ready when it accepts changes again", async () => {
  const health = databaseHealth(bus.nc, database);
  const ready = { databaseReady: true, fault: null };
  expect(await health()).toEqual(ready);
  await database`set default_transaction_read_only = on`;
  expect(await health()).toEqual({ databaseReady: false, fault: "database_unreachable" });
  await database`set default_transaction_read_only = off`;
  expect(await health()).toEqual(ready);
});

test("another database at the same address, or one without tables: not ready, and ready when the first one is back", async () => {
  const health = databaseHealth(bus.nc, database);
  const ready = { databaseReady: true, fault: null };
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
