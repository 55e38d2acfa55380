import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { migrate } from "../../services/db/migrate.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { startPostgres } from "../support/servers.ts";
import { type AuditWorld, committedEvents, copiedEvents, startAuditWorld } from "./audit-world.ts";
import type { ScriptedStation } from "./scripted-station.ts";

const ROOT = join(import.meta.dirname, "..", "..");
let world: AuditWorld;
const programs: RunningProgram[] = [];
afterEach(async () => {
  for (const program of programs.splice(0)) {
    program.process.kill("SIGKILL");
    await program.ended;
  }
  await world.stop();
});

/** The audit service as a process of its own, as it runs in production. */
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

test("every commit is copied exactly once although the copier is killed again and again", async () => {
  world = await startAuditWorld();
  const stations: ScriptedStation[] = [];
  for (let index = 0; index < 8; index += 1) stations.push(await (await world.newStation()).open());
  const [first] = stations as [ScriptedStation, ...ScriptedStation[]];
  let signs = 0;
  /** One more collection, so that the copier that runs now is known to be the one that copies. */
  const untilItCopies = async (): Promise<void> => {
    const before = await position();
    signs += 1;
    await first.collectCash(900_000 + signs);
    await expect.poll(position, { interval: 2, timeout: 10_000 }).toBeGreaterThan(before);
  };
  for (let round = 0; round < 4; round += 1) {
    const program = await startAuditProcess();
    await untilItCopies();
    // Few enough in each round that the log, which keeps 64 commits of a station, still has them when the next copier comes.
    const collecting = Promise.all(stations.map((station) => collect(station, 4, round)));
    await new Promise((resolve) => setTimeout(resolve, 5 + 15 * round));
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
  const collected = stations.length * 4 * 4 + signs;
  expect(intents).toEqual({ ended: collected });

  last.process.kill("SIGTERM");
  expect(await last.ended).toBe(0);
  const [hold] = await world.database`select held_until < now() as released from audit_position`;
  expect(hold).toEqual({ released: true });
});

async function collect(station: ScriptedStation, times: number, round: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await station.collectCash(station.facts.stationId * 100 + round * times + time);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("the copy goes on after NATS was killed", async () => {
  world = await startAuditWorld();
  await world.startAudit();
  const station = await (await world.newStation()).open();
  await station.collectCash(6_001);
  await world.untilCopied();
  await world.nats.kill9();
  await world.nats.restart();
  await expect.poll(() => world.bus.isUp(), { timeout: 15_000 }).toBe(true);
  await station.collectCash(6_002);
  await world.untilCopied();
  expect(await copiedEvents(world.database, station.facts.stationId)).toEqual(committedEvents(station));
});

test("the copy goes on after PostgreSQL was killed", async () => {
  world = await startAuditWorld();
  const postgres = await startPostgres();
  const database = openDatabase({ url: postgres.url });
  try {
    await migrate({ databaseUrl: postgres.url, log: () => undefined });
    const audit = await world.startAudit({ databaseUrl: postgres.url });
    const station = await (await world.newStation()).open();
    const { stationId } = station.facts;
    await expect.poll(() => copiedEvents(database, stationId)).toEqual(committedEvents(station));
    await postgres.kill9();
    await station.collectCash(6_101);
    await postgres.restart();
    await station.collectCash(6_102);
    await expect
      .poll(() => copiedEvents(database, stationId).catch(String), { timeout: 15_000 })
      .toEqual(committedEvents(station));
    await audit.stop();
  } finally {
    await closeDatabase(database);
    await postgres.stop();
  }
});
