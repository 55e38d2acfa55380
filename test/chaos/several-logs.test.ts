/** The main flows where the stations are divided among three logs, on one server. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StationLogs } from "../../services/bus/station-logs.ts";
import { logIn, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { addStations, BEHIND_PROXY, type ChaosStation } from "./chaos-world.ts";
import { linesOf } from "./collection-client.ts";
import { readStationLog } from "./station-log-read.ts";

const LOGS = new StationLogs(3);
const STATIONS = 9;
const RECOVERED = { timeout: 20_000, interval: 200 };

let system: TestSystem;
let owner: Person;
let cashier: Person;
let stations: readonly ChaosStation[];
let sql: postgres.Sql;

beforeAll(async () => {
  system = await startSystem({ layout: { logs: LOGS.count }, environment: BEHIND_PROXY });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stations = await addStations({ system, owner, cashier }, STATIONS);
  sql = postgres(system.database.url, { max: 1 });
});
afterAll(async () => {
  await sql.end();
  await system.stop();
});

/** One station of each log. */
function oneOfEach(): readonly ChaosStation[] {
  return LOGS.all.map((log) => {
    const found = stations.find(({ stationId }) => LOGS.of(stationId) === log);
    if (found === undefined) throw new Error(`None of the stations is in ${log.name}.`);
    return found;
  });
}

async function collectCash({ path }: ChaosStation): Promise<{ order: { order_display_number: number }; id: number }> {
  const order = await cashier.good<{ order_id: number; order_display_number: number }>("POST", `${path}/orders/`, {
    body: linesOf(1_250),
  });
  const intent = await cashier.good<{ intent_id: number }>("POST", `${path}/intents/`, {
    body: { order_id: order.order_id, route: "cash" },
  });
  await cashier.good("POST", `${path}/intents/${intent.intent_id}/attest/`, { body: {} });
  return { order, id: intent.intent_id };
}

describe("stations in three logs", () => {
  test("a collection at a station of each log: its display shows it paid, and only its own log has the commits", async () => {
    for (const station of oneOfEach()) {
      const { order } = await collectCash(station);
      const shown = await station.display.good<{ state: string; order_display_number: number }>("GET", "display/");
      expect(shown).toMatchObject({ state: "paid", order_display_number: order.order_display_number });
      expect((await readStationLog(system.bus, station.stationId, LOGS)).at(-1)?.state.stationId).toBe(
        station.stationId,
      );
      for (const log of LOGS.all) {
        const { subjects = {} } = (
          await system.bus.jsm.streams.info(log.name, { subjects_filter: `station.log.*.*.${station.stationId}` })
        ).state;
        expect(Object.keys(subjects).length).toBe(log === LOGS.of(station.stationId) ? 1 : 0);
      }
    }
  });

  test("the audit copy: each log has a position of its own, and every station's events are copied", async () => {
    for (const { stationId } of oneOfEach()) {
      const copied = async () =>
        Number((await sql`select count(*) from station_events where station_id = ${stationId}`)[0]?.["count"]);
      const committed = (await readStationLog(system.bus, stationId, LOGS)).flatMap(({ events }) => events).length;
      await expect.poll(copied, RECOVERED).toBe(committed);
    }
    const rows = await sql<{ stream: string }[]>`select stream from audit_position where sequence > 0 order by stream`;
    expect(rows.map(({ stream }) => stream)).toEqual(LOGS.all.map(({ name }) => name));
  });

  test("a host that was killed: another start of it knows the stations of every log", async () => {
    await system.processes.stations.kill9();
    await system.processes.stations.restart();
    for (const station of oneOfEach()) {
      await expect
        .poll(async () => (await cashier.call("POST", `${station.path}/lease/`, { body: {} })).status, RECOVERED)
        .toBeLessThan(300);
      await collectCash(station);
    }
  });

  test("a revoked device of each log: refused as soon as the revocation is answered", async () => {
    for (const { companion, companionId } of oneOfEach()) {
      await owner.good("POST", `devices/${companionId}/revoke/`, { body: {} });
      expect((await companion.call("GET", "me/")).status).toBe(401);
    }
  });

  test("one log that has lost everything: its stations are published again, the others are served meanwhile", async () => {
    const [first, second, third] = oneOfEach() as [ChaosStation, ChaosStation, ChaosStation];
    await system.bus.jsm.streams.delete(LOGS.of(second.stationId).name);
    await system.prepareBus();
    const shown = async ({ display }: ChaosStation) => (await display.call("GET", "display/")).status;
    expect(await shown(first)).toBe(200);
    expect(await shown(third)).toBe(200);
    await expect.poll(() => shown(second), { ...RECOVERED, interval: 1_100 }).toBe(200);
    await expect
      .poll(async () => (await cashier.call("POST", `${second.path}/lease/`, { body: {} })).status, RECOVERED)
      .toBeLessThan(300);
    await collectCash(second);
  });
});
