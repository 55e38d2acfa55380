/** The main flows when the stations are divided among three logs, on one server. */
import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StationLogs } from "../../services/bus/streams.ts";
import type { ApiClient } from "../support/api-client.ts";
import { logIn, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { addStations, BEHIND_PROXY, type ChaosStation } from "./chaos-world.ts";
import { linesOf } from "./collection-client.ts";
import { RetryingClient } from "./retrying-client.ts";
import { readStationLog } from "./station-log-read.ts";

const LOGS = new StationLogs(3);
const STATIONS = LOGS.count;
const RECOVERED = { timeout: 20_000, interval: 200 };
/** Longer than all waits of a test. */
const TEST_MS = 120_000;

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

/** Repeats a retryable request with the same key, as a cashier's program does. */
async function collectCash({ path }: ChaosStation): Promise<{ order_display_number: number }> {
  const retrying = new RetryingClient();
  const post = async <T>(what: string, body: unknown): Promise<T> => {
    const request = { body, key: randomUUID() };
    const answer = await retrying.call<T>(cashier, "POST", `${path}/${what}/`, request);
    expect(answer.status, `${what} was answered ${answer.text}`).toBeLessThan(300);
    return answer.body;
  };
  const order = await post<{ order_id: number; order_display_number: number }>("orders", linesOf(1_250));
  const intent = await post<{ intent_id: number }>("intents", { order_id: order.order_id, route: "cash" });
  await post(`intents/${intent.intent_id}/attest`, {});
  return order;
}

async function isShownPaid({ display }: ChaosStation, order: { order_display_number: number }): Promise<void> {
  const shown = async () => (await display.call("GET", "display/")).body;
  const { order_display_number } = order;
  // This interval is within the throttle of a device.
  await expect.poll(shown, { ...RECOVERED, interval: 1_100 }).toMatchObject({ state: "paid", order_display_number });
}

describe("stations in three logs", () => {
  test("a collection at a station of each log: its display shows it paid, and only its log has the commits", {
    timeout: TEST_MS,
  }, async () => {
    for (const station of oneOfEach()) {
      await collectCash(station).then((order) => isShownPaid(station, order));
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

  test("the audit copy: each log has a separate position, and every station's events are copied", {
    timeout: TEST_MS,
  }, async () => {
    for (const { stationId } of oneOfEach()) {
      const copied = async () =>
        Number((await sql`select count(*) from station_events where station_id = ${stationId}`)[0]?.["count"]);
      // Each check reads the log again, because a companion that becomes silent adds an event.
      const committed = async () =>
        (await readStationLog(system.bus, stationId, LOGS)).flatMap(({ events }) => events).length;
      await expect.poll(async () => (await committed()) - (await copied()), RECOVERED).toBe(0);
    }
    const rows = await sql<{ stream: string }[]>`select stream from audit_position where sequence > 0 order by stream`;
    expect(rows.map(({ stream }) => stream)).toEqual(LOGS.all.map(({ name }) => name));
  });

  test("a killed host: after its restart it has the stations of every log", {
    timeout: TEST_MS,
  }, async () => {
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

  test("a station is added while the services stall: requests answered with 503 are repeated until they continue", {
    timeout: TEST_MS,
  }, async () => {
    const statuses: number[] = [];
    const counted: ApiClient = {
      ...owner,
      async call<T>(...request: Parameters<ApiClient["call"]>) {
        const answer = await owner.call<T>(...request);
        statuses.push(answer.status);
        return answer;
      },
    };
    const pid = system.processes.services.pid();
    process.kill(pid, "SIGSTOP");
    const adding = addStations({ system, owner: counted, cashier }, 1);
    adding.catch(() => undefined);
    await expect.poll(() => statuses, RECOVERED).toContain(503);
    process.kill(pid, "SIGCONT");
    expect(await adding).toHaveLength(1);
  });

  test("one log is deleted: stations of the others work, and its stations work again when the log exists again", {
    timeout: TEST_MS,
  }, async () => {
    const [first, second, third] = oneOfEach() as [ChaosStation, ChaosStation, ChaosStation];
    await system.bus.jsm.streams.delete(LOGS.of(second.stationId).name);
    for (const other of [first, third]) await collectCash(other).then((order) => isShownPaid(other, order));
    await system.prepareBus();
    await expect
      .poll(async () => (await cashier.call("POST", `${second.path}/lease/`, { body: {} })).status, RECOVERED)
      .toBeLessThan(300);
    await collectCash(second).then((order) => isShownPaid(second, order));
  });
});
