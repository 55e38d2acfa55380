/** The main path from end to end: order → smart POS → fetch → report → attest → paid once. The display shows each step. */

import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import type { stationEventsSchema } from "../../../gateway/api/backoffice/events.ts";
import type { timelineSchema } from "../../../gateway/api/backoffice/timelines.ts";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { intentsSchema } from "../../../gateway/api/cashier/intents.ts";
import type { orderSchema } from "../../../gateway/api/cashier/orders.ts";
import type { routesSchema } from "../../../gateway/api/cashier/routes.ts";
import { enrollSandboxDevice, type TestDevice } from "../../support/devices.ts";
import { HANGS } from "../../support/hangs.ts";
import { logIn, openTill, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

let system: TestSystem;
let cashier: Person;
let owner: Person;
let companion: TestDevice;
let display: TestDevice;
let station: string;

const LINES = {
  lines: [
    { name: "Soup of the day", quantity: 2, unit_amount: "6.25" },
    { name: "Wine", quantity: 1, unit_amount: "12.5" },
  ],
};

beforeAll(async () => {
  system = await sharedSystem();
  ({ cashier, station } = await openTill(system));
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  display = await enrollSandboxDevice(system, "customer_display");
});
afterAll(() => system.stop());

const openOrder = (): Promise<Order> => cashier.good("POST", `${station}/orders/`, { body: LINES });
const readIntent = (intent: Intent): Promise<Intent> => cashier.good("GET", `${station}/intents/${intent.intent_id}/`);
const shown = (): Promise<Record<string, unknown>> => display.good("GET", "display/");

async function handOver(order: Order): Promise<Intent> {
  await companion.good("POST", "heartbeat/", { body: {} });
  await vi.waitFor(async () => {
    const { routes } = await cashier.good<z.infer<typeof routesSchema>>("GET", `${station}/routes/`);
    expect(routes.find(({ route }) => route === "smart_pos")).toMatchObject({ offered: true, reason: null });
  }, HANGS);
  return cashier.good("POST", `${station}/intents/`, { body: { order_id: order.order_id, route: "smart_pos" } });
}

function report(intent: Intent, outcome: string, reference: string) {
  return {
    body: {
      intent_id: intent.intent_id,
      outcome,
      provider_reference: reference,
      provider_code: "00",
      client_idempotency_key: `key-${intent.intent_id}-${outcome}`,
    },
  };
}

describe("one smart POS collection, step by step", () => {
  let order: Order;
  let intent: Intent;

  it("a new order: the display shows its total", async () => {
    expect(await shown()).toMatchObject({ state: "idle", amount: "0.00", order_display_number: 0, currency: "EUR" });
    order = await openOrder();
    expect(order).toMatchObject({ status: "open", total: "25.00", currency: "EUR", transaction: null });
    expect(await shown()).toMatchObject({
      state: "total",
      amount: "25.00",
      order_display_number: order.order_display_number,
      intent_status: "",
    });
  });

  it("the collection is created: handed to the live companion with the order's amount", async () => {
    intent = await handOver(order);
    expect(intent).toMatchObject({
      status: "created",
      route: "smart_pos",
      amount: "25.00",
      device_id: companion.deviceId,
      reports: [],
      settle_offered: false,
      cancel_offered: true,
      attestation: null,
    });
    const early = await cashier.refused("evidence_required", "POST", `${station}/intents/${intent.intent_id}/attest/`);
    expect(early).toMatchObject({ status: 409, body: { status: "created" } });
  });

  it("the companion fetches it: presented", async () => {
    const { assignment } = await companion.good<{ assignment: Record<string, unknown> }>("GET", "assignment/");
    expect(assignment).toMatchObject({ intent_id: intent.intent_id, amount: "25.00", status: "presented" });
    await vi.waitFor(async () => expect((await readIntent(intent)).status).toBe("presented"), HANGS);
    expect((await readIntent(intent)).presented_at).not.toBeNull();
  });

  it("the companion reports a success: evidence, and no money yet", async () => {
    await companion.good("POST", "assignment/report/", report(intent, "reported_success", "SLIP-1"));
    const seen = await readIntent(intent);
    expect(seen).toMatchObject({ status: "processing", report_count: 1, settle_offered: true, attestation: null });
    expect(seen.reports).toMatchObject([
      { outcome: "reported_success", provider_reference: "SLIP-1", provider_code: "00", device_id: companion.deviceId },
    ]);
    const unpaid = await cashier.good<Order>("GET", `orders/${order.order_id}/`);
    expect(unpaid).toMatchObject({ status: "open", transaction: null });
    expect(await shown()).toMatchObject({ state: "total", intent_status: "processing" });
  });

  it("the cashier attests: paid, with the device's reference", async () => {
    const settled = await cashier.good<Intent>("POST", `${station}/intents/${intent.intent_id}/attest/`);
    expect(settled).toMatchObject({
      status: "succeeded",
      settle_offered: false,
      cancel_offered: false,
      attestation: { cashier_id: cashier.userId, cashier_name: cashier.name, reference: "SLIP-1" },
    });
    // The next read of the display and of the order shows the payment.
    expect(await shown()).toMatchObject({ state: "paid", amount: "25.00", intent_status: "succeeded" });
    const paid = await cashier.good<Order>("GET", `orders/${order.order_id}/`);
    expect(paid).toMatchObject({
      status: "paid",
      transaction: {
        transaction_id: settled.attestation?.transaction_id,
        intent_id: intent.intent_id,
        route: "smart_pos",
        amount: "25.00",
        reference: "SLIP-1",
      },
    });
  });

  it("attested and collected again: both are refused, and the order is paid once", async () => {
    const attest = `${station}/intents/${intent.intent_id}/attest/`;
    const again = await cashier.refused("intent_not_actionable", "POST", attest);
    expect(again).toMatchObject({ status: 409, body: { status: "succeeded" } });
    const body = { order_id: order.order_id, route: "cash" };
    expect((await cashier.refused("order_already_paid", "POST", `${station}/intents/`, { body })).status).toBe(409);
    const sql = postgres(system.database.url, { max: 1 });
    const sales = await sql`select amount_minor::text from transactions where order_id = ${order.order_id}`;
    await sql.end();
    expect(sales).toEqual([{ amount_minor: "2500" }]);
  });

  it("eight seconds after the payment: the display is idle", async () => {
    await vi.waitFor(async () => expect((await shown()).state).toBe("idle"), { timeout: 15_000, interval: 1_500 });
  });

  it("its timeline: explains it to the owner step by step", async () => {
    const timeline = await vi.waitFor(async () => {
      const read = await owner.good<z.infer<typeof timelineSchema>>("GET", `intents/${intent.intent_id}/timeline/`);
      expect(read.entries.at(-1)?.type).toBe("intent_succeeded");
      return read;
    }, HANGS);
    expect(timeline).toMatchObject({ intent_id: intent.intent_id, status: "succeeded", money_moved: "yes" });
    expect(timeline.summary.replace(/transaction \d+/, "transaction N")).toBe(
      `EUR 25.00 for order ${order.order_display_number} was collected by smart POS as transaction N, reference SLIP-1.`,
    );
    expect(timeline.entries.map(({ type }) => type)).toEqual([
      "intent_created",
      "intent_presented",
      "outcome_reported",
      "settlement_started",
      "intent_succeeded",
    ]);
    expect(timeline.entries.map(({ actor }) => actor.kind)).toEqual([
      "cashier",
      "device",
      "device",
      "cashier",
      expect.any(String),
    ]);
    for (const entry of timeline.entries) expect(entry.sentence).toMatch(/^[A-Z].*\.$/);
    expect(timeline.entries[0]?.data).toMatchObject({ amount: "25.00", currency: "EUR", route: "smart_pos" });
    const times = timeline.entries.map(({ at }) => at);
    expect(times).toEqual(times.toSorted());
  });

  it("the station's events: contain it, page by page without a gap", async () => {
    const events: z.infer<typeof stationEventsSchema>["events"] = [];
    for (let since = 0, more = true; more; ) {
      const path = `${station}/events/?limit=3&since_version=${since}`;
      const page = await owner.good<z.infer<typeof stationEventsSchema>>("GET", path);
      events.push(...page.events);
      since = page.events.at(-1)?.version ?? since;
      more = page.has_more;
    }
    const versions = [...new Set(events.map(({ version }) => version))];
    expect(versions).toEqual(versions.map((_, index) => index + 1));
    expect(events.filter(({ intent_id }) => intent_id === intent.intent_id).map(({ type }) => type)).toContain(
      "outcome_reported",
    );
  });
});

describe("a collection with a decline", () => {
  it("the device reports a decline: settle is still offered, and the cashier's attestation settles", async () => {
    const intent = await handOver(await openOrder());
    await companion.good("POST", "assignment/report/", report(intent, "reported_declined", ""));
    const declined = await readIntent(intent);
    expect(declined).toMatchObject({ status: "processing", settle_offered: true, cancel_offered: true });
    const body = { reference: "TYPED-1" };
    const settled = await cashier.good<Intent>("POST", `${station}/intents/${intent.intent_id}/attest/`, { body });
    expect(settled).toMatchObject({ status: "succeeded", attestation: { reference: "TYPED-1" } });
  });
});

describe("an attestation with a typed reference", () => {
  it("the device has reported another one: that one is stored, and the answer is a success, also with a key", async () => {
    // A fixed defect: the order was settled, but the answer was `idempotency_key_reused`.
    for (const key of [undefined, "typed-anyway"]) {
      const intent = await handOver(await openOrder());
      const slip = `SLIP-${intent.intent_id}`;
      await companion.good("POST", "assignment/report/", report(intent, "reported_success", slip));
      const path = `${station}/intents/${intent.intent_id}/attest/`;
      const body = { reference: "TYPED" };
      const settled = await cashier.good<Intent>("POST", path, key === undefined ? { body } : { body, key });
      expect(settled).toMatchObject({ status: "succeeded", attestation: { reference: slip } });
    }
  });
});

describe("a cancelled collection", () => {
  it("a success reported later: refused, stored, and shown to the owner as money that may have moved", async () => {
    const order = await openOrder();
    const intent = await handOver(order);
    const cancelled = await cashier.good<Intent>("POST", `${station}/intents/${intent.intent_id}/cancel/`);
    expect(cancelled).toMatchObject({ status: "cancelled", settle_offered: false, cancel_offered: false });
    expect(cancelled.ended_at).not.toBeNull();
    const late = await companion.call("POST", "assignment/report/", report(intent, "reported_success", "LATE-1"));
    expect(late).toMatchObject({ status: 409, body: { code: "intent_not_actionable", status: "cancelled" } });
    expect(await cashier.good<Order>("GET", `orders/${order.order_id}/`)).toMatchObject({ status: "open" });
    await vi.waitFor(async () => {
      const timeline = await owner.good<z.infer<typeof timelineSchema>>("GET", `intents/${intent.intent_id}/timeline/`);
      expect(timeline.entries.at(-1)).toMatchObject({ type: "late_evidence_kept", money_moved: "maybe" });
      expect(timeline.money_moved).toBe("maybe");
    }, HANGS);
    const { intents } = await cashier.good<z.infer<typeof intentsSchema>>("GET", `${station}/intents/`);
    expect(intents[0]).toMatchObject({ intent_id: intent.intent_id, status: "cancelled" });
    await cashier.refused("intent_not_actionable", "POST", `${station}/intents/${intent.intent_id}/attest/`);
    await cashier.refused("intent_not_actionable", "POST", `${station}/intents/${intent.intent_id}/cancel/`);
  });
});
