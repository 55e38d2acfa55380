/** The station log is lost, but PostgreSQL knows which guests may have paid. Their next collection needs a confirmation. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../../services/db/pool.ts";
import { addDevice, type TestDevice } from "../../support/devices.ts";
import type { Refused } from "../../support/http.ts";
import { STATION_LOG } from "../../support/one-log.ts";
import { logIn, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

const WITHIN_A_MINUTE = { timeout: 60_000, interval: 200 };

interface Case {
  readonly name: string;
  readonly route: "smart_pos" | "dynamic_qr";
  readonly outcome?: "reported_success";
  /** Whether the collection is still active when the log is lost. */
  readonly isActive?: boolean;
  readonly reason: string;
}

const CASES: readonly Case[] = [
  { name: "a hand-off that was fetched and cancelled", route: "smart_pos", reason: "handoff_presented" },
  {
    name: "a hand-off whose success was reported, and that was cancelled",
    route: "smart_pos",
    outcome: "reported_success",
    reason: "success_reported",
  },
  { name: "a QR that was shown and cancelled", route: "dynamic_qr", reason: "qr_presented" },
  {
    name: "a hand-off that was fetched and is active",
    route: "smart_pos",
    isActive: true,
    reason: "handoff_presented",
  },
  { name: "a QR that is shown", route: "dynamic_qr", isActive: true, reason: "qr_presented" },
];

interface Collection {
  readonly intent_id: number;
  readonly intent_display_number: number;
  readonly status: string;
  readonly money_may_have_moved: string;
}

let system: TestSystem;
let database: Database;
let owner: Person;
let cashier: Person;
const counters = new Map<string, Counter>();

beforeAll(async () => {
  system = await startSystem({ sandboxProvider: true });
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  // Each case has its station, so that all cases need only one loss of the log.
  for (const each of CASES) counters.set(each.name, await Counter.open(each));
  await loseLog();
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

/** One station with one collection whose money may have moved. */
class Counter {
  readonly #station: string;
  /** The display number of the newest collection. */
  #newest: number | undefined;
  orderId = 0;
  intentId = 0;

  constructor(stationId: number) {
    this.#station = `stations/${stationId}`;
  }

  static async open({ name, route, outcome, isActive = false, reason }: Case): Promise<Counter> {
    const facts = { filial_id: system.sandbox.filialId, name, currency: "EUR" };
    const { station_id } = await owner.good<{ station_id: number }>("POST", "stations/", { body: facts });
    const counter = new Counter(station_id);
    await counter.lease();
    const companion = route === "smart_pos" ? await addCompanion(station_id) : undefined;
    counter.orderId = await counter.openOrder();
    const { intent_id } = await counter.collect(counter.orderId, route);
    counter.intentId = intent_id;
    await vi.waitUntil(async () => {
      await companion?.good("GET", "assignment/");
      return (await counter.read(intent_id)).status === "presented";
    }, WITHIN_A_MINUTE);
    if (outcome !== undefined) await companion?.good("POST", "assignment/report/", { body: { intent_id, outcome } });
    if (!isActive) {
      await cashier.good("POST", `${counter.#station}/intents/${intent_id}/cancel/`, {});
      const { status, body } = await counter.create(counter.orderId, "cash");
      expect([status, body]).toMatchObject([409, { code: "money_may_have_moved", reason }]);
    }
    return counter;
  }

  async lease(): Promise<void> {
    await vi.waitUntil(async () => {
      const { status } = await cashier.call("POST", `${this.#station}/lease/`);
      return status === 200 || status === 201;
    }, WITHIN_A_MINUTE);
  }

  async openOrder(): Promise<number> {
    // For this amount, the sandbox provider never reports the result of a QR.
    const lines = [{ name: "Soup", quantity: 1, unit_amount: "9.12" }];
    const order = await cashier.good<{ order_id: number }>("POST", `${this.#station}/orders/`, { body: { lines } });
    return order.order_id;
  }

  create(order_id: number, route: string, confirms_money_may_have_moved?: boolean) {
    return cashier.call<Refused & Collection>("POST", `${this.#station}/intents/`, {
      body: { order_id, route, confirms_money_may_have_moved },
    });
  }

  read(intentId: number): Promise<Collection> {
    return cashier.good<Collection>("GET", `${this.#station}/intents/${intentId}/`);
  }

  /** Begins a collection as soon as its route is offered. Its display number must be the next one. */
  async collect(orderId: number, route: string, confirms?: boolean): Promise<Collection> {
    const made = await vi.waitUntil(async () => {
      const answer = await this.create(orderId, route, confirms);
      return answer.status === 201 && answer.body;
    }, WITHIN_A_MINUTE);
    if (this.#newest !== undefined) expect(made.intent_display_number).toBe(this.#newest + 1);
    this.#newest = made.intent_display_number;
    return made;
  }

  async attest(intentId: number): Promise<void> {
    await cashier.good("POST", `${this.#station}/intents/${intentId}/attest/`, {});
  }
}

async function addCompanion(stationId: number): Promise<TestDevice> {
  const facts = {
    station_id: stationId,
    name: "Companion",
    kind: "smart_pos_companion",
    handoff_target: "pos://collect",
  };
  const companion = await addDevice(system.baseUrl, owner, facts);
  await companion.good("POST", "heartbeat/", { body: {} });
  return companion;
}

/** Deletes the log and does the documented recovery: the relay publishes the state from PostgreSQL to an empty log. */
async function loseLog(): Promise<void> {
  const { state } = await system.bus.jsm.streams.info(STATION_LOG.name);
  await vi.waitUntil(async () => {
    const rows = await database`select from audit_position where read_through >= ${state.last_seq}`;
    return rows.length > 0;
  }, WITHIN_A_MINUTE);
  await system.processes.services.stop();
  await system.processes.stations.stop();
  await system.bus.jsm.streams.delete(STATION_LOG.name);
  await system.prepareBus();
  await system.processes.services.restart();
  await system.processes.stations.restart();
}

describe("a station that has lost its log", () => {
  it.each(CASES)("$name: the next collection is refused until the cashier confirms", async (each) => {
    const { isActive, reason, name } = each;
    const counter = counters.get(name) as Counter;
    const { orderId, intentId } = counter;
    await counter.lease();
    const { status, body } = await vi.waitUntil(async () => {
      const answer = await counter.create(orderId, "cash");
      return answer.status < 500 && answer;
    }, WITHIN_A_MINUTE);
    expect([status, body]).toMatchObject([409, { code: "money_may_have_moved", reason, earlier_intent_id: intentId }]);
    const ended = { status: isActive === true ? "expired" : "cancelled", money_may_have_moved: reason };
    await vi.waitFor(async () => expect(await counter.read(intentId)).toMatchObject(ended), WITHIN_A_MINUTE);
    // Other orders are collected without a confirmation, and the display numbers continue.
    const next = await counter.collect(await counter.openOrder(), "cash");
    await counter.attest(next.intent_id);
    const confirmed = await counter.collect(orderId, "cash", true);
    await counter.attest(confirmed.intent_id);
  });
});
