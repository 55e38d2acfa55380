/** A station's log is lost: PostgreSQL knows that a guest may have paid, so the next collection still asks. */
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
/** The display number of the newest collection. */
let newest: number | undefined;

beforeAll(async () => {
  system = await startSystem({ sandboxProvider: true });
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

interface Collection {
  readonly intent_id: number;
  readonly intent_display_number: number;
  readonly status: string;
  readonly money_may_have_moved: string;
}

const create = (order_id: number, route: string, confirms_money_may_have_moved?: boolean) =>
  cashier.call<Refused & Collection>("POST", `${station}/intents/`, {
    body: { order_id, route, confirms_money_may_have_moved },
  });
const read = (intent_id: number) => cashier.good<Collection>("GET", `${station}/intents/${intent_id}/`);

async function openOrder(): Promise<number> {
  // Of a QR of this amount the sandbox provider never knows what became of it.
  const lines = [{ name: "Soup", quantity: 1, unit_amount: "9.12" }];
  return (await cashier.good<{ order_id: number }>("POST", `${station}/orders/`, { body: { lines } })).order_id;
}

/** Another collection of the order, as soon as the route is offered, with the next display number. */
async function collect(order_id: number, route: string, confirms?: boolean): Promise<Collection> {
  const made = await vi.waitUntil(async () => {
    const answer = await create(order_id, route, confirms);
    return answer.status === 201 && answer.body;
  }, PATIENT);
  if (newest !== undefined) expect(made.intent_display_number).toBe(newest + 1);
  newest = made.intent_display_number;
  return made;
}

async function untilCopied(intentId: number, type: string): Promise<void> {
  await vi.waitUntil(async () => {
    const rows = await database`select from station_events where intent_id = ${intentId} and type = ${type}`;
    return rows.length > 0;
  }, PATIENT);
}

/** The documented recovery: the relay publishes to an empty log what PostgreSQL knows, which is all that the log had. */
async function loseLog(): Promise<void> {
  const { state } = await system.bus.jsm.streams.info(STATION_LOG.name);
  await vi.waitUntil(async () => {
    const rows = await database`select from audit_position where read_through >= ${state.last_seq}`;
    return rows.length > 0;
  }, PATIENT);
  await system.processes.services.stop();
  await system.processes.stations.stop();
  await system.bus.jsm.streams.delete(STATION_LOG.name);
  await system.prepareBus();
  await system.processes.services.restart();
  await system.processes.stations.restart();
  await vi.waitUntil(async () => (await cashier.call("POST", `${station}/lease/`)).status === 200, PATIENT);
}

it.each([
  ["a hand-off that was fetched and cancelled", { route: "smart_pos" }, "handoff_presented"],
  [
    "a hand-off whose success was reported, and that was cancelled",
    { route: "smart_pos", outcome: "reported_success" },
    "success_reported",
  ],
  ["a QR that was shown and cancelled", { route: "dynamic_qr" }, "qr_presented"],
  ["a hand-off that was fetched and is active", { route: "smart_pos", isActive: true }, "handoff_presented"],
  ["a QR that is shown", { route: "dynamic_qr", isActive: true }, "qr_presented"],
] as const)("%s: the next collection is refused until the cashier confirms", async (_what, earlier, reason) => {
  const { route, outcome, isActive } = { outcome: undefined, isActive: false, ...earlier };
  await cashier.call("POST", `${station}/lease/`);
  await companion.call("POST", "heartbeat/", { body: {} });
  const orderId = await openOrder();
  const { intent_id } = await collect(orderId, route);
  if (route === "smart_pos")
    await vi.waitUntil(
      async () => (await companion.call("GET", "assignment/")).text.includes(`:${intent_id},`),
      PATIENT,
    );
  await vi.waitUntil(async () => (await read(intent_id)).status === "presented", PATIENT);
  if (outcome !== undefined) await companion.good("POST", "assignment/report/", { body: { intent_id, outcome } });
  if (!isActive) {
    await cashier.good("POST", `${station}/intents/${intent_id}/cancel/`, {});
    const { status, body } = await create(orderId, "cash");
    expect([status, body]).toMatchObject([409, { code: "money_may_have_moved", reason }]);
  }
  const presented = route === "smart_pos" ? "intent_presented" : "qr_presented";
  await untilCopied(intent_id, isActive ? presented : "intent_cancelled");
  const other = await openOrder();

  await loseLog();
  const { status, body } = await vi.waitUntil(async () => {
    const answer = await create(orderId, "cash");
    return answer.status < 500 && answer;
  }, PATIENT);
  expect([status, body]).toMatchObject([409, { code: "money_may_have_moved", reason, earlier_intent_id: intent_id }]);
  const ended = { status: isActive ? "expired" : "cancelled", money_may_have_moved: reason };
  await vi.waitFor(async () => expect(await read(intent_id)).toMatchObject(ended), PATIENT);
  // Every other order is collected as before; the numbers continue.
  for (const [order, confirms] of [
    [other, undefined],
    [orderId, true],
  ] as const) {
    const next = await collect(order, "cash", confirms);
    await cashier.good("POST", `${station}/intents/${next.intent_id}/attest/`, {});
  }
});
