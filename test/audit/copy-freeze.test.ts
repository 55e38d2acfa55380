/** A PostgreSQL that stands still says nothing at all, and when it goes on it ends the transactions that it held. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { startPostgres, type TestServer } from "../support/servers.ts";
import { type AuditWorld, committedEvents, copiedEvents, startAuditWorld } from "./audit-world.ts";
import type { ScriptedStation } from "./scripted-station.ts";

/** PostgreSQL ends a transaction that was idle for this long; shortened, so that a test need not stand still for ten seconds. */
const IDLE_MS = 300;
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let world: AuditWorld;
let postgres: TestServer;
let database: Database;
beforeEach(async () => {
  [world, postgres] = await Promise.all([startAuditWorld(), startPostgres()]);
  await migrate({ databaseUrl: postgres.url, log: () => undefined });
  database = openDatabase({ url: postgres.url });
});
afterEach(async () => {
  postgres.signalAll("SIGCONT");
  await closeDatabase(database);
  await world.stop();
  await postgres.stop();
});

const copierUrl = (): string => `${postgres.url}?idle_in_transaction_session_timeout=${IDLE_MS}`;

async function untilCopied(station: ScriptedStation): Promise<void> {
  const copied = (): Promise<unknown> => copiedEvents(database, station.facts.stationId).catch(String);
  await expect.poll(copied).toEqual(committedEvents(station));
}

test("the copy goes on after PostgreSQL stood still in whatever it was doing", async () => {
  const audit = await world.startAudit({ databaseUrl: copierUrl() });
  const station = await (await world.newStation()).open();
  await untilCopied(station);
  for (let round = 0; round < 6; round += 1) {
    const over = new AbortController();
    const collecting = (async () => {
      for (let count = 0; !over.signal.aborted && count < 12; count += 1)
        await station.collectCash(7_000 + round * 100 + count);
    })();
    await wait(20 + 7 * round);
    postgres.signalAll("SIGSTOP");
    await wait(2 * IDLE_MS);
    over.abort();
    await collecting;
    postgres.signalAll("SIGCONT");
    await untilCopied(station);
  }
  const stoppingAtMs = performance.now();
  await audit.stop();
  expect(performance.now() - stoppingAtMs).toBeLessThan(2_000);
});

test("the service ends although PostgreSQL stands still", async () => {
  const audit = await world.startAudit({ databaseUrl: copierUrl() });
  const station = await (await world.newStation()).open();
  await untilCopied(station);
  postgres.signalAll("SIGSTOP");
  await station.collectCash(9_001);
  await wait(100);
  const stoppingAtMs = performance.now();
  await audit.stop();
  expect(performance.now() - stoppingAtMs).toBeLessThan(8_000);
});
