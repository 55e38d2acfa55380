/**
 * A nats-server loses data: it restarts with an older copy, and later with no data, while PostgreSQL has all its data. Within
 * HEALED_WITHIN_MS, the bus again has the data that PostgreSQL has, and no order is paid twice.
 *
 *   npx vitest run test/chaos/bus-data-lost.test.ts
 *   CHAOS_LOGS=/tmp/logs npx vitest run test/chaos/bus-data-lost.test.ts    # keeps what the processes logged
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addDevice, type TestDevice } from "../support/devices.ts";
import { comeBackWith, copyData } from "../support/nats-data.ts";
import { logIn, type Person } from "../support/people.ts";
import { type AuditEvent, newEventsOf, readAuditLog } from "./bus-data-lost-events.ts";
import { type ChaosStation, type ChaosWorld, startChaosWorld } from "./chaos-world.ts";
import type { Intent, Order } from "./collection-facts.ts";
import { RetryingClient } from "./retrying-client.ts";
import { newestSequence } from "./station-log-read.ts";

/** The longest time from the restart of nats-server until the bus again has the data that PostgreSQL has. */
const HEALED_WITHIN_MS = 10_000;
/** The throttle allows a device one poll a second. */
const CHECK_MS = 1_100;

let world: ChaosWorld;
let sql: postgres.Sql;
const retrying = new RetryingClient();
beforeAll(async () => {
  world = await startChaosWorld(2);
  sql = postgres(world.system.database.url, { max: 2, onnotice: () => undefined });
});
afterAll(async () => {
  const folder = process.env.CHAOS_LOGS;
  if (folder !== undefined) {
    mkdirSync(folder, { recursive: true });
    for (const name of ["services", "stations", "gateway"] as const) {
      writeFileSync(join(folder, `${name}.log`), world.system.log(name));
    }
  }
  await sql.end();
  await world.system.stop();
});

/** Repeats the check until it passes, and prints the time since the restart of the server. */
async function eventually(what: string, backAtMs: number, check: () => Promise<void>): Promise<void> {
  for (;;) {
    const failure = await check().then(
      () => undefined,
      (error: unknown) => error,
    );
    const sinceMs = Math.round(performance.now() - backAtMs);
    if (failure === undefined) {
      process.stderr.write(`bus data lost: ${what} after ${sinceMs} ms\n`);
      return;
    }
    if (sinceMs > HEALED_WITHIN_MS) throw new Error(`${what}: not within ${HEALED_WITHIN_MS} ms`, { cause: failure });
    await delay(CHECK_MS);
  }
}

/**
 * Resolves when the relay has announced again every part that the bus had lost. Before that, a gateway may still answer from
 * its memory. This test sets no kill switch, so the relay announces the switches only to an empty bus.
 */
async function untilAnnounced(backAtMs: number, earlier: number, parts: number): Promise<void> {
  await eventually("every lost part is announced", backAtMs, async () => {
    const [row] = await sql<[{ announced: number }]>`
      select count(*)::int as announced from bus_announcements
      where finished_at is not null and extract(epoch from requested_at) * 1000 > ${earlier}`;
    expect(row.announced).toBe(parts);
  });
}

async function untilCopied(): Promise<void> {
  await expect
    .poll(async () => Number((await sql`select sequence from audit_position`)[0]?.["sequence"]), { timeout: 15_000 })
    .toBe(await newestSequence(world.system.bus));
}

const openOrder = (station: ChaosStation, price: string): Promise<Order> =>
  world.cashier.good("POST", `${station.path}/orders/`, {
    body: { lines: [{ name: "Soup", quantity: 1, unit_amount: price }] },
  });

/** Begins a collection and reports its success, so that the cashier has the evidence. */
async function collectUntilReported(station: ChaosStation, { order_id }: Order): Promise<Intent> {
  await retrying.call(station.companion, "POST", "heartbeat/", { body: {} });
  let intent: Intent | undefined;
  // After an outage a companion is offline until the station has processed its heartbeat.
  await expect
    .poll(async () => {
      const body = { order_id, route: "smart_pos" };
      const answer = await retrying.call<Intent>(world.cashier, "POST", `${station.path}/intents/`, { body });
      if (answer.status === 201) intent = answer.body;
      return answer.text;
    })
    .toContain("intent_id");
  if (intent === undefined) throw new Error("There is no intent.");
  const { intent_id } = intent;
  await expect
    .poll(async () => (await retrying.call(station.companion, "GET", "assignment/")).text, {
      interval: 1_100,
      timeout: 15_000,
    })
    .toContain(`"intent_id":${intent_id}`);
  const report = { intent_id, outcome: "reported_success", provider_reference: `slip-${intent_id}` };
  const body = { ...report, provider_code: "00", client_idempotency_key: `report-${intent_id}` };
  expect((await retrying.call(station.companion, "POST", "assignment/report/", { body })).status).toBe(200);
  return intent;
}

const attest = (station: ChaosStation, intentId: number) =>
  retrying.call<Intent & { code?: string }>(world.cashier, "POST", `${station.path}/intents/${intentId}/attest/`);

async function collect(station: ChaosStation, order: Order): Promise<number> {
  const { intent_id } = await collectUntilReported(station, order);
  const settled = await attest(station, intent_id);
  expect([settled.status, settled.body.status], settled.text).toEqual([200, "succeeded"]);
  return settled.body.attestation?.transaction_id ?? 0;
}

async function newDisplay(stationId: number): Promise<TestDevice> {
  const facts = { station_id: stationId, name: "New display", kind: "customer_display" };
  return await addDevice(world.system.baseUrl, world.owner, facts);
}

async function sales(): Promise<readonly unknown[]> {
  return await sql`select transaction_id, order_id, intent_id from transactions order by transaction_id`;
}

describe("nats-server restarts with an older copy of its data", () => {
  let counter: ChaosStation;
  let other: ChaosStation;
  let paid: { order: Order; intent: Intent; transactionId: number };
  let lostOnly: { order: Order; intent: Intent; transactionId: number };
  let waiting: Order;
  let enrolled: TestDevice;
  let openedLater: { stationId: number; display: TestDevice };
  let newcomer: Person;
  let leaver: Person;
  let auditLog: readonly AuditEvent[];
  let salesBefore: readonly unknown[];
  let backAtMs: number;

  it("an attestation is repeated after the restart: it succeeds with the first transaction", async () => {
    const [first, second] = world.stations;
    if (first === undefined || second === undefined) throw new Error("There are no stations.");
    counter = first;
    other = second;
    const order = await openOrder(counter, "12.50");
    const intent = await collectUntilReported(counter, order);
    leaver = await logIn(world.system.baseUrl, "cashier", world.system.cashier);
    await untilCopied();
    const copy = copyData(world.system.nats);

    const settled = await attest(counter, intent.intent_id);
    expect(settled.body.status, settled.text).toBe("succeeded");
    paid = { order, intent, transactionId: settled.body.attestation?.transaction_id ?? 0 };
    const lostOrder = await openOrder(counter, "3.00");
    const lostIntent = await collectUntilReported(counter, lostOrder);
    const settledToo = await attest(counter, lostIntent.intent_id);
    const transactionId = settledToo.body.attestation?.transaction_id ?? 0;
    lostOnly = { order: lostOrder, intent: lostIntent, transactionId };
    waiting = await openOrder(counter, "7.25");
    enrolled = await newDisplay(counter.stationId);
    const body = { filial_id: world.system.sandbox.filialId, name: "Opened later", currency: "EUR" };
    const opened = await world.owner.good<{ station_id: number }>("POST", "stations/", { body });
    openedLater = { stationId: opened.station_id, display: await newDisplay(opened.station_id) };
    newcomer = await logIn(world.system.baseUrl, "cashier", world.system.cashier);
    await leaver.good("DELETE", "session/");
    await world.owner.good("POST", `devices/${other.companionId}/suspend/`);
    const { devices } = await world.owner.good<{ devices: { device_id: number; kind: string }[] }>(
      "GET",
      `devices/?station_id=${other.stationId}`,
    );
    const displayId = devices.find(({ kind }) => kind === "customer_display")?.device_id;
    await world.owner.good("POST", `devices/${displayId}/revoke/`);
    await untilCopied();
    auditLog = await readAuditLog(sql);
    salesBefore = await sales();

    const cutAtMs = Date.now();
    await comeBackWith(world.system.nats, copy);
    backAtMs = performance.now();
    // The cashier repeats the attestation. The relay may not yet have announced to the station that the intent is paid.
    const again = await attest(counter, intent.intent_id);
    expect(again.body.status, again.text).toBe("succeeded");
    if (again.status === 200) expect(again.body.attestation?.transaction_id).toBe(paid.transactionId);
    await untilAnnounced(backAtMs, cutAtMs, 3);
  });

  it("devices and sessions: enrolled devices work; suspended, revoked and logged-out ones are refused", async () => {
    await eventually("enrolled devices work", backAtMs, async () => {
      for (const device of [enrolled, openedLater.display]) {
        const me = await device.call("GET", "me/");
        expect([me.status, me.body["status"]], me.text).toEqual([200, "active"]);
      }
    });
    await eventually("suspended and revoked devices are refused", backAtMs, async () => {
      expect((await other.companion.call("GET", "assignment/")).body).toMatchObject({ code: "device_suspended" });
      expect((await other.display.call("GET", "display/")).status).toBe(401);
    });
    await eventually("the new session works and the ended session is refused", backAtMs, async () => {
      expect((await newcomer.call("GET", "stations/")).status).toBe(200);
      expect((await leaver.call("GET", "stations/")).status).toBe(401);
    });
  });

  it("displays and cashier: they see the state of PostgreSQL, and a paid order cannot be paid again", async () => {
    await eventually("the display shows the open order", backAtMs, async () => {
      const shown = (await enrolled.call("GET", "display/")).body;
      // After the relay's announcement, the display may first show the paid order for eight seconds.
      expect(shown["state"] === "paid" || shown["amount"] === "7.25", JSON.stringify(shown)).toBe(true);
      const read = await world.cashier.call<Intent>("GET", `${counter.path}/intents/${paid.intent.intent_id}/`);
      expect(read.body.status).toBe("succeeded");
    });
    const { orders } = await world.cashier.good<{ orders: Order[] }>("GET", `${counter.path}/orders/`);
    const statuses = new Map(orders.map(({ order_id, status }) => [order_id, status]));
    expect([paid.order, lostOnly.order, waiting].map(({ order_id }) => statuses.get(order_id))).toEqual([
      "paid",
      "paid",
      "open",
    ]);
    for (const { order, intent, transactionId } of [paid, lostOnly]) {
      const read = await world.cashier.good<Intent>("GET", `${counter.path}/intents/${intent.intent_id}/`);
      expect(read).toMatchObject({ status: "succeeded", attestation: { transaction_id: transactionId } });
      expect(read.attestation?.reference).toBe(`slip-${intent.intent_id}`);
      expect((await attest(counter, intent.intent_id)).body).toMatchObject({
        code: "intent_not_actionable",
        status: "succeeded",
      });
      const again = { order_id: order.order_id, route: "cash" };
      const refused = await world.cashier.call("POST", `${counter.path}/intents/`, { body: again });
      expect(refused.body).toMatchObject({ code: "order_already_paid" });
      expect(await world.cashier.good("GET", `orders/${order.order_id}/`)).toMatchObject({
        status: "paid",
        transaction: { transaction_id: transactionId, intent_id: intent.intent_id },
      });
      const path = `intents/${intent.intent_id}/timeline/`;
      const timeline = await world.owner.good<{ status: string; money_moved: string; entries: { type: string }[] }>(
        "GET",
        path,
      );
      expect(timeline).toMatchObject({ status: "succeeded", money_moved: "yes" });
      expect(timeline.entries.map(({ type }) => type)).toContain("log_lost");
    }
    expect(await sales()).toEqual(salesBefore);
  });

  it("a further collection: it succeeds, and the audit log has the events before and after the loss", async () => {
    const transactionId = await collect(counter, waiting);
    expect(transactionId).toBeGreaterThan(lostOnly.transactionId);
    expect(await sales()).toHaveLength(salesBefore.length + 1);
    await untilCopied();
    const added = newEventsOf(auditLog, await readAuditLog(sql));
    const types = added.filter(({ stationId }) => stationId === counter.stationId).map(({ type }) => type);
    expect(types[0]).toBe("log_lost");
    expect(types.slice(-3)).toEqual(["outcome_reported", "settlement_started", "intent_succeeded"]);
    const failed = await sql`select outbox_id, failed_reason from outbox where failed_reason is not null`;
    expect(failed).toEqual([]);
  });
});

describe("nats-server restarts with no data", () => {
  it("the relay announces everything in PostgreSQL: devices, sessions and orders work again", async () => {
    const [counter] = world.stations;
    if (counter === undefined) throw new Error("There are no stations.");
    const order = await openOrder(counter, "9.90");
    await untilCopied();
    const auditLog = await readAuditLog(sql);
    const salesBefore = await sales();
    const cutAtMs = Date.now();
    await comeBackWith(world.system.nats, undefined);
    await world.system.prepareBus();
    const backAtMs = performance.now();
    await untilAnnounced(backAtMs, cutAtMs, 4);
    await eventually("devices, sessions and the open order are back", backAtMs, async () => {
      const me = await counter.companion.call("GET", "me/");
      expect([me.status, me.body["status"]], me.text).toEqual([200, "active"]);
      expect((await counter.display.call("GET", "display/")).body).toMatchObject({ state: "total", amount: "9.90" });
      expect((await world.cashier.call("GET", "stations/")).status).toBe(200);
    });
    const lease = await retrying.call(world.cashier, "POST", `${counter.path}/lease/`, {
      body: { lifetime_seconds: 3_600 },
    });
    expect(lease.status, lease.text).toBeLessThan(300);
    await collect(counter, order);
    expect(await sales()).toHaveLength(salesBefore.length + 1);
    await untilCopied();
    const added = newEventsOf(auditLog, await readAuditLog(sql)).filter(
      ({ stationId }) => stationId === counter.stationId,
    );
    expect(added.slice(0, 2).map(({ type }) => type)).toEqual(["log_lost", "station_changed"]);
  });
});
