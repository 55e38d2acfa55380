/** The connections of all processes to PostgreSQL: each process divides its number, and each start adds up all numbers. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkConnections } from "../../services/db/connection-check.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { shareConnections } from "../../services/runtime/run-services.ts";
import { startPostgres, type TestServer } from "../support/servers.ts";

let server: TestServer;
const warnings: object[] = [];
const log = { warn: (fields: object) => void warnings.push(fields) };
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

const use = async (): Promise<void> => undefined;
const start = (connections: number) =>
  checkConnections({ url: server.url, names: ["settlement"], connections, log, use });

describe("connections to PostgreSQL", () => {
  it("one process with more connections than PostgreSQL allows: it does not start", async () => {
    await expect(start(98)).rejects.toMatchObject({
      code: "database_connections",
      message:
        "PostgreSQL has 97 connections for its clients, and this process may open 98: set DATABASE_CONNECTIONS to less, or raise max_connections there.",
    });
  });

  it("several processes with more in total: the last one to start warns, and the sum excludes ended processes", async () => {
    const [first, second] = [await start(50), await start(47)];
    expect(warnings).toEqual([]);
    const third = await start(10);
    expect(warnings).toEqual([{ connections: 107, available: 97, processes: 3 }]);
    await second.release();
    const again = await start(30);
    expect(warnings).toHaveLength(1);
    await Promise.all([first, third, again].map((each) => each.release()));
  });

  it("a process that has ended: it is no longer counted", async () => {
    const kept = await start(20);
    const admin = openDatabase({ url: server.url, maxConnections: 1 });
    const counted = () => admin`select from pg_stat_activity where application_name like 'device-payments up to 20:%'`;
    expect(await counted()).toHaveLength(1);
    await kept.release();
    await expect.poll(async () => (await counted()).length).toBe(0);
    await closeDatabase(admin);
  });
});

describe("the services of one process", () => {
  const names = ["registry", "settlement", "audit", "relay"];

  it("no setting: each service gets as many as it can use, and the process has one more", () => {
    const { total, of } = shareConnections(names, undefined);
    expect(Object.fromEntries(of)).toEqual({ registry: 10, settlement: 8, audit: 6, relay: 11 });
    expect(total).toBe(36);
  });

  it("a lower setting: the services divide it, and never open more", () => {
    for (let total = 11; total <= 80; total += 1) {
      const { of } = shareConnections(names, total);
      expect([...of.values()].reduce((sum, count) => sum + count, 1)).toBeLessThanOrEqual(total);
      expect(Math.min(...of.values())).toBeGreaterThanOrEqual(2);
    }
  });

  it("a setting below their need: the process does not start", () => {
    expect(() => shareConnections(names, 10)).toThrow(
      "The setting DATABASE_CONNECTIONS is not usable: registry, settlement, audit, relay in one process need at least 11.",
    );
  });

  it("an actor host: it needs none", () => {
    expect(shareConnections(["stations"], undefined).total).toBe(0);
  });
});
