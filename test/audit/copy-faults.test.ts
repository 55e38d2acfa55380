/**
 * The audit copy has every commit once when the copier, NATS or PostgreSQL fails. The short form kills the copier and stops
 * PostgreSQL twice. The long form of `npm run soak` does so six times (FAULT_ROUNDS).
 */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { startPostgres, type TestServer } from "../support/servers.ts";
import { type AuditWorld, committedEvents, copiedEvents, startAuditWorld } from "./audit-world.ts";
import type { ScriptedStation } from "./scripted-station.ts";

const ROUNDS = Number(process.env["FAULT_ROUNDS"] ?? 2);
const ROOT = join(import.meta.dirname, "..", "..");

let world: AuditWorld;
beforeEach(async () => {
  world = await startAuditWorld();
});
afterEach(() => world.stop());

async function untilCopied(database: Database, station: ScriptedStation): Promise<void> {
  const copied = (): Promise<unknown> => copiedEvents(database, station.facts.stationId).catch(String);
  await expect.poll(copied).toEqual(committedEvents(station));
}

describe("a copier that is killed repeatedly", () => {
  const programs: RunningProgram[] = [];
  afterEach(async () => {
    for (const program of programs.splice(0)) {
      program.process.kill("SIGKILL");
      await program.ended;
    }
  });

  /** Starts the audit service in a separate process, as in production. */
  async function startAuditProcess(): Promise<RunningProgram> {
    const env = { ...process.env, NATS_URL: world.nats.url, DATABASE_URL: world.databaseUrl, LOG_LEVEL: "info" };
    const program = runProgram(process.execPath, ["services/main.ts", "audit"], { cwd: ROOT, env });
    programs.push(program);
    await program.waitFor(/"msg":"ready"/);
    return program;
  }

  async function position(): Promise<number> {
    const [row] = await world.database<{ sequence: number }[]>`select sequence from audit_position`;
    return row?.sequence ?? 0;
  }

  test("every commit is copied exactly once, and a copier that ends on SIGTERM releases its hold", async () => {
    const stations: ScriptedStation[] = [];
    for (let index = 0; index < 8; index += 1) stations.push(await world.openStation());
    const [first] = stations as [ScriptedStation, ...ScriptedStation[]];
    const committed = (): number => stations.reduce((sum, { commits }) => sum + commits.length, 0);
    let extra = 0;
    /** Makes another collection, and waits until the running copier has copied it. */
    const untilItCopies = async (): Promise<void> => {
      const before = await position();
      extra += 1;
      await first.collectCash(900_000 + extra);
      await expect.poll(position, { interval: 2 }).toBeGreaterThan(before);
    };
    // The log keeps 64 commits of a station. A round has fewer commits, so the next copier finds all of them.
    const collect = async (station: ScriptedStation, round: number): Promise<void> => {
      for (let time = 0; time < 4; time += 1) {
        await station.collectCash(station.facts.stationId * 100 + round * 4 + time);
      }
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      const program = await startAuditProcess();
      await untilItCopies();
      const before = committed();
      const collecting = Promise.all(stations.map((station) => collect(station, round)));
      await expect.poll(committed, { interval: 1 }).toBeGreaterThan(before + 20 * (round % 4));
      program.process.kill("SIGKILL");
      await program.ended;
      await collecting;
    }
    const last = await startAuditProcess();
    await untilItCopies();
    await world.untilCopied();
    for (const station of stations) {
      expect(await copiedEvents(world.database, station.facts.stationId)).toEqual(committedEvents(station));
    }
    const [intents] = await world.database`
      select count(*) as ended from intent_history where intent::json ->> 'status' = 'succeeded'`;
    expect(intents).toEqual({ ended: stations.length * ROUNDS * 4 + extra });

    last.process.kill("SIGTERM");
    expect(await last.ended).toBe(0);
    const [hold] = await world.database`select held_until < now() as released from audit_position`;
    expect(hold).toEqual({ released: true });
  });
});

describe("NATS is killed", () => {
  test("the copy continues after its restart", async () => {
    await world.startAudit();
    const station = await world.openStation();
    await station.collectCash(6_001);
    await world.untilCopied();
    await world.nats.kill9();
    await world.nats.restart();
    await expect.poll(() => world.bus.isUp()).toBe(true);
    await station.collectCash(6_002);
    await world.untilCopied();
    expect(await copiedEvents(world.database, station.facts.stationId)).toEqual(committedEvents(station));
  });
});

describe("NATS does not answer for three seconds", () => {
  const FAULTS = {
    stalled: { begin: () => world.nats.signal("SIGSTOP"), end: () => world.nats.signal("SIGCONT") },
    killed: { begin: () => world.nats.kill9(), end: () => world.nats.restart() },
  } as const;

  // In the second case, the server is killed before the copier has a position in the log.
  test.each([
    { what: "stalled", commits: 1 },
    { what: "killed", commits: 0 },
  ] as const)(
    "$what: one line reports that the copy does not work, and one reports when it works again",
    async ({ what, commits }) => {
      const lines: string[] = [];
      const note = (_fields: object, message: string): void => void lines.push(message);
      const log = Object.assign(createLog({ service: "audit", level: "silent" }), { info: note, warn: note });
      await world.startAudit({ log });
      if (commits > 0) await (await world.openStation()).collectCash(6_003);
      await world.untilCopied();
      await FAULTS[what].begin();
      // In this time, the copier renews its hold several times.
      await delay(3_000);
      expect(lines).toEqual(["the audit copy of STATION_LOG_0 does not work"]);
      await FAULTS[what].end();
      const again = "the audit copy of STATION_LOG_0 works again";
      await expect.poll(() => lines, { timeout: 10_000 }).toContain(again);
      expect(lines).toEqual(["the audit copy of STATION_LOG_0 does not work", again]);
    },
  );
});

describe("PostgreSQL fails", () => {
  /** PostgreSQL ends a transaction after this idle time. It is shorter than the ten seconds in production. */
  const IDLE_MS = 300;
  /** One server for all tests of this group. Each test has a separate database, a copy of the server's first one. */
  let postgres: TestServer;
  let databaseUrl: string;
  let database: Database;
  const urlOf = (name: string): string => Object.assign(new URL(postgres.url), { pathname: `/${name}` }).href;
  beforeAll(async () => {
    postgres = await startPostgres();
    await migrate({ databaseUrl: postgres.url, log: () => undefined });
  });
  beforeEach(async ({ task }) => {
    const name = `of_${task.id.replaceAll(/\W/g, "_")}`;
    const maker = openDatabase({ url: urlOf("template1"), maxConnections: 1 });
    await maker.unsafe(`create database "${name}" template postgres`);
    await closeDatabase(maker);
    databaseUrl = urlOf(name);
    database = openDatabase({ url: databaseUrl });
  });
  afterEach(async () => {
    postgres.signalAll("SIGCONT");
    await closeDatabase(database);
  });
  afterAll(() => postgres.stop());

  const startAudit = () =>
    world.startAudit({ databaseUrl: `${databaseUrl}?idle_in_transaction_session_timeout=${IDLE_MS}` });
  const stopMs = async (audit: { stop(): Promise<void> }): Promise<number> => {
    const startedAtMs = performance.now();
    await audit.stop();
    return performance.now() - startedAtMs;
  };

  test("it is killed: the copy continues after its restart", async () => {
    const audit = await startAudit();
    const station = await world.openStation();
    await untilCopied(database, station);
    await postgres.kill9();
    await station.collectCash(6_101);
    await postgres.restart();
    await station.collectCash(6_102);
    await untilCopied(database, station);
    await audit.stop();
  });

  test("it is stalled at any step, for longer than a transaction may be idle: the copy continues after that", async () => {
    const audit = await startAudit();
    const station = await world.openStation();
    await untilCopied(database, station);
    for (let round = 0; round < ROUNDS; round += 1) {
      const over = new AbortController();
      const before = station.commits.length;
      const collecting = (async () => {
        for (let count = 0; !over.signal.aborted && count < 12; count += 1)
          await station.collectCash(7_000 + round * 100 + count);
      })();
      await expect.poll(() => station.commits.length, { interval: 1 }).toBeGreaterThan(before + 4 * (round % 6));
      postgres.signalAll("SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, 2 * IDLE_MS));
      over.abort();
      await collecting;
      postgres.signalAll("SIGCONT");
      await untilCopied(database, station);
    }
    expect(await stopMs(audit)).toBeLessThan(2_000);
  });

  test("it is stalled while the copier writes: the service still ends on request", async () => {
    const audit = await startAudit();
    const station = await world.openStation();
    await untilCopied(database, station);
    let batchesRead = 0;
    const reads = world.bus.nc.subscribe(`$JS.API.DIRECT.GET.${STATION_LOG.name}`, {
      callback: (_error, message) =>
        void (batchesRead += Number(message.json<{ batch?: number }>().batch !== undefined)),
    });
    await world.bus.nc.flush();
    // A copier that is stalled during the renewal of its hold reads no batch. One that has read a batch then writes it.
    for (let order = 9_001; batchesRead === 0; order += 1) {
      postgres.signalAll("SIGCONT");
      await untilCopied(database, station);
      postgres.signalAll("SIGSTOP");
      batchesRead = 0;
      await station.collectCash(order);
      await vi.waitFor(() => expect(batchesRead).toBeGreaterThan(0), { timeout: 2_000 }).catch(() => undefined);
    }
    reads.unsubscribe();
    expect(await stopMs(audit)).toBeLessThan(8_000);
  });
});
