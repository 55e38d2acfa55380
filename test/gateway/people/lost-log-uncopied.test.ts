/** A station loses its log before the log is copied. Any guest may have paid, so every open order needs a confirmation. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../../services/db/pool.ts";
import { enrollSandboxDevice, type TestDevice } from "../../support/devices.ts";
import type { Refused } from "../../support/http.ts";
import { STATION_LOG } from "../../support/one-log.ts";
import { newOrder, openTill, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

const WITHIN_A_MINUTE = { timeout: 60_000, interval: 200 };

let system: TestSystem;
let database: Database;
let cashier: Person;
let companion: TestDevice;
let station: string;

beforeAll(async () => {
  // The audit service does not run, so nothing copies the log.
  system = await startSystem({ services: ["registry", "settlement", "providers", "relay"] });
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  ({ cashier, station } = await openTill(system));
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  await companion.good("POST", "heartbeat/", { body: {} });
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

const create = (order_id: number, route: string, confirms_money_may_have_moved?: boolean) =>
  cashier.call<Refused & { intent_id: number }>("POST", `${station}/intents/`, {
    body: { order_id, route, confirms_money_may_have_moved },
  });

const openOrder = (): Promise<number> => newOrder(cashier, station, "9.00");

async function payCash(orderId: number, confirms?: boolean): Promise<void> {
  const { status, body } = await create(orderId, "cash", confirms);
  expect(status).toBe(201);
  await cashier.good("POST", `${station}/intents/${body.intent_id}/attest/`, {});
}

describe("a station that has lost its log before a copy", () => {
  it("open orders need a confirmation, without a reason; an order that is opened later needs none", async () => {
    const orderId = await openOrder();
    const { intent_id } = await vi.waitUntil(async () => {
      const answer = await create(orderId, "smart_pos");
      return answer.status === 201 && answer.body;
    }, WITHIN_A_MINUTE);
    await vi.waitUntil(
      async () => (await companion.call("GET", "assignment/")).text.includes(`:${intent_id},`),
      WITHIN_A_MINUTE,
    );
    await cashier.good("POST", `${station}/intents/${intent_id}/cancel/`, {});
    const untouched = await openOrder();
    const end = (await system.bus.jsm.streams.info(STATION_LOG.name)).state.last_seq;
    await vi.waitUntil(async () => {
      const rows = await database`select from bus_marks where stream = ${STATION_LOG.name} and sequence >= ${end}`;
      return rows.length > 0;
    }, WITHIN_A_MINUTE);

    await system.processes.services.stop();
    await system.processes.stations.stop();
    await system.bus.jsm.streams.delete(STATION_LOG.name);
    await system.prepareBus();
    await system.processes.services.restart();
    await system.processes.stations.restart();
    await vi.waitUntil(async () => (await cashier.call("POST", `${station}/lease/`)).status === 200, WITHIN_A_MINUTE);
    for (const open of [orderId, untouched]) {
      const { status, body } = await vi.waitUntil(async () => {
        const answer = await create(open, "cash");
        return answer.status < 500 && answer;
      }, WITHIN_A_MINUTE);
      expect([status, body.code]).toEqual([409, "money_may_have_moved"]);
      await payCash(open, true);
    }
    await vi.waitUntil(async () => {
      const rows = await database`select from bus_announcements where part = 'stations' and finished_at is not null`;
      return rows.length > 0;
    }, WITHIN_A_MINUTE);
    await payCash(await openOrder());
    expect(await database`select from bus_marks where uncopied`).toHaveLength(0);
  });
});
