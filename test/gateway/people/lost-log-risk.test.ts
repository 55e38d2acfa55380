/** A station's log is lost: that a guest may have paid is known to PostgreSQL, so the next collection still asks. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../../services/db/pool.ts";
import { enrollDevice, type TestDevice } from "../../support/devices.ts";
import type { Refused } from "../../support/http.ts";
import { STATION_LOG } from "../../support/one-log.ts";
import { logIn, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

const PATIENT = { timeout: 60_000, interval: 200 };

let system: TestSystem;
let database: Database;
let cashier: Person;
let companion: TestDevice;
let station: string;

beforeAll(async () => {
  system = await startSystem();
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const [first] = system.sandbox.stations;
  const code = first?.devices.find(({ kind }) => kind === "smart_pos_companion")?.enrollmentCode ?? "none";
  companion = await enrollDevice(system.baseUrl, code);
  station = `stations/${first?.stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  await companion.good("POST", "heartbeat/", { body: {} });
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

it.each([
  ["a hand-off that was fetched and cancelled", undefined],
  ["a hand-off whose success was reported, and that was cancelled", "reported_success"],
])("%s: the next collection is refused until the cashier confirms", async (_what, outcome) => {
  await cashier.call("POST", `${station}/lease/`);
  await companion.call("POST", "heartbeat/", { body: {} });
  const lines = [{ name: "Soup", quantity: 1, unit_amount: "9.00" }];
  const { order_id } = await cashier.good<{ order_id: number }>("POST", `${station}/orders/`, { body: { lines } });
  const collect = (route: string) =>
    cashier.call<Refused & { intent_id?: number }>("POST", `${station}/intents/`, { body: { order_id, route } });
  const { intent_id } = await vi.waitUntil(async () => {
    const made = await collect("smart_pos");
    return made.status === 201 && made.body;
  }, PATIENT);
  await vi.waitUntil(async () => (await companion.call("GET", "assignment/")).text.includes(`:${intent_id},`), PATIENT);
  if (outcome !== undefined) await companion.good("POST", "assignment/report/", { body: { intent_id, outcome } });
  await cashier.good("POST", `${station}/intents/${intent_id}/cancel/`, {});
  const before = await collect("cash");
  expect([before.status, before.body.code]).toEqual([409, "money_may_have_moved"]);
  // PostgreSQL has it.
  await vi.waitUntil(async () => {
    const rows = await database`select 1 from station_events where intent_id = ${intent_id ?? 0} and type = 'intent_cancelled'`;
    return rows.length > 0;
  }, PATIENT);

  await system.processes.services.stop();
  await system.processes.stations.stop();
  await system.bus.jsm.streams.delete(STATION_LOG.name);
  await system.prepareBus();
  await system.processes.services.restart();
  await system.processes.stations.restart();
  await vi.waitUntil(async () => (await cashier.call("POST", `${station}/lease/`)).status === 200, PATIENT);
  const after = await vi.waitUntil(async () => {
    const answer = await collect("cash");
    return answer.status < 500 && answer;
  }, PATIENT);
  expect([after.status, after.body.code]).toEqual([409, "money_may_have_moved"]);
});
