/** The copy of several logs: each has a position of its own. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCopyLags } from "../../services/audit/copy/progress.ts";
import { startAuditService } from "../../services/audit/service.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { StationLogs } from "../../services/bus/streams.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";
import { committedEvents, copiedEvents, newStation } from "./audit-world.ts";
import type { ScriptedStation } from "./scripted-station.ts";

const LOGS = new StationLogs(3);
const log = createLog({ service: "audit", level: "silent" });
let nats: TestServer;
let testDatabase: TestDatabase;
let database: Database;
let bus: Bus;
let audit: Service;

beforeAll(async () => {
  [nats, testDatabase] = await Promise.all([startNats(), cloneDatabase()]);
  await prepareBus(nats.url, testDatabase.url, { logs: LOGS.count });
  database = openDatabase({ url: testDatabase.url });
  bus = await connectBus({ url: nats.url, name: "test", log });
  audit = await startAudit();
});
afterAll(async () => {
  await audit.stop();
  await Promise.all([bus.close(), closeDatabase(database)]);
  await Promise.all([nats.stop(), testDatabase.drop()]);
});

function startAudit(): Promise<Service> {
  const settings = { natsUrl: nats.url, databaseUrl: testDatabase.url, logLevel: "silent" as const };
  return startAuditService({ bus, logs: LOGS, log, settings, environment: {} });
}

/** One station of each log. */
async function stationOfEach(): Promise<readonly ScriptedStation[]> {
  const found = new Map<string, ScriptedStation>();
  while (found.size < LOGS.count) {
    const station = await newStation(bus, database, LOGS);
    const { name } = LOGS.of(station.facts.stationId);
    if (!found.has(name)) found.set(name, await station.open());
  }
  return [...found.values()];
}

async function untilCopied(stations: readonly ScriptedStation[]): Promise<void> {
  for (const station of stations) {
    const copied = () => copiedEvents(database, station.facts.stationId);
    await expect.poll(copied, { timeout: 15_000 }).toEqual(committedEvents(station));
  }
}

it("several logs: each is copied from its own position, and a loss in one is none in the others", async () => {
  const stations = await stationOfEach();
  await Promise.all(stations.map((station, index) => station.collectCash(100 + index)));
  await untilCopied(stations);
  await audit.stop();
  const positions = async () => await database`select stream, sequence from audit_position order by stream`;
  const ends = stations.map((station) => ({
    stream: LOGS.of(station.facts.stationId).name,
    sequence: station.commits.at(-1)?.sequence,
  }));
  expect(await positions()).toEqual(ends.toSorted((a, b) => a.stream.localeCompare(b.stream)));

  // The copy of the first log says more than that log has.
  await database`update audit_position set sequence = 1000 where stream = ${LOGS.all[0]?.name ?? ""}`;
  audit = await startAudit();
  await Promise.all(stations.map((station, index) => station.collectCash(200 + index)));
  await untilCopied(stations);
  expect(await database`select from station_events where type in ('log_lost', 'audit_gap')`).toHaveLength(0);
  const lags = await readCopyLags({ bus, database, logs: LOGS });
  expect(lags.map(({ log: name, behind }) => [name, behind])).toEqual(LOGS.all.map(({ name }) => [name, 0]));
});
