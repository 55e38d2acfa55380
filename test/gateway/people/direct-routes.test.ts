/** Cash and the attested terminal settle through the payment seam. A changed order is never settled with its old amount. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { intentsSchema } from "../../../gateway/api/cashier/intents.ts";
import type { orderSchema, ordersSchema } from "../../../gateway/api/cashier/orders.ts";
import type { routesSchema } from "../../../gateway/api/cashier/routes.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { logIn, oneLine, openTill, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

let system: TestSystem;
let cashier: Person;
let station: string;
let otherStation: string;

beforeAll(async () => {
  system = await sharedSystem();
  ({ cashier, station } = await openTill(system));
  otherStation = `stations/${system.sandbox.stations[1]?.stationId}`;
});
afterAll(() => system.stop());

const openOrder = (amount = "9.90", at = station): Promise<Order> =>
  cashier.good("POST", `${at}/orders/`, { body: oneLine(amount) });
const readOrder = (order: Order): Promise<Order> => cashier.good("GET", `orders/${order.order_id}/`);
const collect = (order: Order, route: string): Promise<Intent> =>
  cashier.good("POST", `${station}/intents/`, { body: { order_id: order.order_id, route } });
const path = (intent: Intent, step = ""): string => `${station}/intents/${intent.intent_id}/${step}`;

describe("a collection in cash", () => {
  it("attested without a device: the order is paid", async () => {
    const order = await openOrder();
    const intent = await collect(order, "cash");
    expect(intent).toMatchObject({ status: "created", device_id: null, settle_offered: true });
    const settled = await cashier.good<Intent>("POST", path(intent, "attest/"));
    expect(settled).toMatchObject({ status: "succeeded", attestation: { reference: "" } });
    expect(await readOrder(order)).toMatchObject({ status: "paid", transaction: { route: "cash", amount: "9.90" } });
  });

  it("two orders in a row: each has the next display number", async () => {
    const [first, second] = [await openOrder(), await openOrder()];
    expect(second.order_display_number).toBe(first.order_display_number + 1);
    const { orders } = await cashier.good<z.infer<typeof ordersSchema>>(
      "GET",
      `${station}/orders/?status=open&limit=2`,
    );
    expect(orders.map(({ order_id }) => order_id)).toEqual([second.order_id, first.order_id]);
  });
});

describe("a collection by an attested terminal", () => {
  it("an attestation without the reference of the slip: refused; with it: the order is paid", async () => {
    const order = await openOrder();
    const intent = await collect(order, "attested_terminal");
    const bare = await cashier.refused("reference_required", "POST", path(intent, "attest/"));
    expect(bare.status).toBe(409);
    expect(await readOrder(order)).toMatchObject({ status: "open" });
    const body = { reference: "TERM-0042" };
    const settled = await cashier.good<Intent>("POST", path(intent, "attest/"), { body });
    expect(settled).toMatchObject({ status: "succeeded", attestation: { reference: "TERM-0042" } });
    expect(await readOrder(order)).toMatchObject({ status: "paid", transaction: { reference: "TERM-0042" } });
  });
});

describe("a slip whose reference has settled an order", () => {
  const body = { reference: "RRN-204957319001" };
  const confirmed = { ...body, confirms_reference_already_used: true };

  it("attested for another order: refused with the earlier order, until the cashier confirms", async () => {
    const first = await openOrder("7.40");
    await cashier.good("POST", path(await collect(first, "attested_terminal"), "attest/"), { body });
    const second = await openOrder();
    const intent = await collect(second, "attested_terminal");
    const attest = path(intent, "attest/");
    const refused = await cashier.refused("reference_already_used", "POST", attest, { key: "slip", body });
    expect(refused).toMatchObject({
      status: 409,
      body: {
        status: "created",
        earlier_order: {
          order_id: first.order_id,
          order_display_number: first.order_display_number,
          amount: "7.40",
          currency: "EUR",
          settled_at: expect.stringMatching(/^20\d\d-.*Z$/),
        },
      },
    });
    expect(await readOrder(second)).toMatchObject({ status: "open", transaction: null });
    const again = await cashier.refused("reference_already_used", "POST", attest, { key: "slip", body });
    expect(again.body).toEqual({ ...refused.body, request_id: again.body.request_id });
    // The confirmation is another command, also with the same key.
    const settled = await cashier.good<Intent>("POST", attest, { key: "slip", body: confirmed });
    expect(settled).toMatchObject({ status: "succeeded", attestation: body });
    expect(await cashier.good<Intent>("POST", attest, { key: "slip", body: confirmed })).toEqual(settled);
    expect(await readOrder(second)).toMatchObject({ status: "paid", transaction: body });
    const owner = await logIn(system.baseUrl, "backoffice", system.owner);
    const { entries } = await owner.good<{ entries: { sentence: string }[] }>(
      "GET",
      `intents/${intent.intent_id}/timeline/`,
    );
    const sentences = entries.map(({ sentence }) => sentence).join("\n");
    expect(sentences).toMatch(/its reference had already settled another order: order \d+ at .*, EUR 7\.40, at 20/);
    expect(sentences).toMatch(/confirmed that it may have settled another order before/);
  });

  it("the same attestation repeated: the same answer, without a warning about the order that it settled", async () => {
    const intent = await collect(await openOrder(), "attested_terminal");
    const sending = { key: "own slip", body: { reference: "RRN-204957319002" } };
    const settled = await cashier.good<Intent>("POST", path(intent, "attest/"), sending);
    expect(await cashier.good<Intent>("POST", path(intent, "attest/"), sending)).toEqual(settled);
  });
});

describe("an order that changes during its collection", () => {
  it("another amount: not settled, because the guest was shown the first one", async () => {
    const order = await openOrder("10.00");
    const intent = await collect(order, "cash");
    const changed = await cashier.good<Order>("PUT", `orders/${order.order_id}/lines/`, { body: oneLine("11.00") });
    expect(changed).toMatchObject({ total: "11.00", revision: order.revision + 1 });
    const refused = await cashier.refused("order_changed", "POST", path(intent, "attest/"));
    expect(refused).toMatchObject({ status: 409, body: { status: "created" } });
    expect(await readOrder(order)).toMatchObject({ status: "open", transaction: null });
    // The collection is `created` again. The cashier cancels it and collects the amount that is due now.
    expect(await cashier.good<Intent>("GET", path(intent))).toMatchObject({
      status: "created",
      attestation: null,
      amount: "10.00",
    });
    await cashier.good("POST", path(intent, "cancel/"));
    const second = await collect(order, "cash");
    expect(second.amount).toBe("11.00");
    await cashier.good("POST", path(second, "attest/"));
    expect(await readOrder(order)).toMatchObject({ status: "paid", transaction: { amount: "11.00" } });
  });

  it("the order is voided: its collection ends, and no other can begin", async () => {
    const order = await openOrder();
    const intent = await collect(order, "cash");
    expect(await cashier.good<Order>("POST", `orders/${order.order_id}/void/`)).toMatchObject({ status: "voided" });
    expect(await cashier.good<Intent>("GET", path(intent, ""))).toMatchObject({
      status: "cancelled",
      end_reason: "order_voided",
      settle_offered: false,
      cancel_offered: false,
    });
    expect((await cashier.refused("intent_not_actionable", "POST", path(intent, "attest/"))).status).toBe(409);
    const body = { order_id: order.order_id, route: "cash" };
    expect((await cashier.refused("order_voided", "POST", `${station}/intents/`, { body })).status).toBe(409);
  });
});

describe("a request about an order that is refused", () => {
  it("change of a paid or voided order, and void of a paid order: conflict", async () => {
    const paid = await openOrder();
    await cashier.good("POST", path(await collect(paid, "cash"), "attest/"));
    const voided = await openOrder();
    await cashier.good("POST", `orders/${voided.order_id}/void/`);
    for (const { order_id } of [paid, voided]) {
      const change = await cashier.refused("conflict", "PUT", `orders/${order_id}/lines/`, { body: oneLine("1") });
      expect(change.status).toBe(409);
    }
    expect((await cashier.refused("conflict", "POST", `orders/${paid.order_id}/void/`)).status).toBe(409);
  });

  it("an order that does not exist: not found", async () => {
    for (const [method, tail] of [
      ["GET", ""],
      ["PUT", "lines/"],
      ["POST", "void/"],
    ] as const) {
      const sending = method === "PUT" ? { body: oneLine("1") } : {};
      expect((await cashier.refused("not_found", method, `orders/999999/${tail}`, sending)).status).toBe(404);
    }
  });

  it("invalid lines: each is named by its pointer", async () => {
    const body = {
      lines: [
        { name: "Soup", quantity: 1, unit_amount: "1.005" },
        { name: "", quantity: 0, unit_amount: "1" },
        { name: "Tip", quantity: 1, unit_amount: "1", tax: "19" },
      ],
    };
    const refused = await cashier.refused("invalid_request", "POST", `${station}/orders/`, { body });
    expect(refused.status).toBe(400);
    expect(refused.body.errors).toEqual([
      { pointer: "/lines/0/unit_amount", code: "wrong_format", detail: "Must be an amount such as 12.50." },
      { pointer: "/lines/1/name", code: "missing", detail: "Must not be empty." },
      { pointer: "/lines/1/quantity", code: "too_small", limit: 1, detail: "Must be at least 1." },
      { pointer: "/lines/2/tax", code: "unknown_field", detail: "Is not a field of this request." },
    ]);
  });

  it("a total above the contract's largest amount: invalid", async () => {
    const body = { lines: [{ name: "Gold", quantity: 9_999, unit_amount: "9999999999.99" }] };
    expect((await cashier.refused("invalid_request", "POST", `${station}/orders/`, { body })).status).toBe(400);
  });
});

describe("a request about a collection that is refused", () => {
  it("a route that is not offered: refused with the reason that the list of routes gives", async () => {
    const { routes, companions } = await cashier.good<z.infer<typeof routesSchema>>("GET", `${station}/routes/`);
    expect(companions).toMatchObject([{ offered: false, reason: "device_not_enrolled" }]);
    const order = await openOrder();
    expect(Object.fromEntries(routes.map(({ route, reason }) => [route, reason]))).toEqual({
      smart_pos: "device_not_enrolled",
      dynamic_qr: "provider_not_configured",
      attested_terminal: null,
      cash: null,
    });
    for (const { route, reason } of routes.filter(({ offered }) => !offered)) {
      const body = { order_id: order.order_id, route };
      const refused = await cashier.refused("route_not_offered", "POST", `${station}/intents/`, { body });
      expect(refused).toMatchObject({ status: 409, body: { reason } });
    }
  });

  it("an order of another station, or one that does not exist: not found", async () => {
    const foreign = await openOrder("1.00", otherStation);
    for (const order_id of [foreign.order_id, 999_999]) {
      const body = { order_id, route: "cash" };
      expect((await cashier.refused("not_found", "POST", `${station}/intents/`, { body })).status).toBe(404);
    }
  });

  it("an order with nothing to collect: the amount is not collectable", async () => {
    const order = await cashier.good<Order>("POST", `${station}/orders/`, { body: { lines: [] } });
    expect(order.total).toBe("0.00");
    const body = { order_id: order.order_id, route: "cash" };
    expect((await cashier.refused("amount_not_collectable", "POST", `${station}/intents/`, { body })).status).toBe(409);
  });

  it("a second collection while one is active: refused", async () => {
    const intent = await collect(await openOrder(), "cash");
    const body = { order_id: (await openOrder()).order_id, route: "cash" };
    const refused = await cashier.refused("collection_active", "POST", `${station}/intents/`, { body });
    expect(refused).toMatchObject({ status: 409, body: { status: "created" } });
    await cashier.good("POST", path(intent, "cancel/"));
  });

  it("a lifetime out of bounds, an unknown route or an amount in the request: invalid", async () => {
    const order_id = (await openOrder()).order_id;
    for (const [field, value] of [
      ["lifetime_seconds", 29],
      ["lifetime_seconds", 1_801],
      ["route", "barter"],
      ["amount", "0.01"],
      ["order_id", "1"],
    ] as const) {
      const body = { order_id, route: "cash", [field]: value };
      const refused = await cashier.refused("invalid_request", "POST", `${station}/intents/`, { body });
      expect(refused.body.errors?.map(({ pointer }) => pointer)).toEqual([`/${field}`]);
    }
  });

  it("an intent that does not exist, or that belongs to another station: unknown", async () => {
    const intent = await collect(await openOrder(), "cash");
    for (const unknown of [`${station}/intents/999999/`, `${otherStation}/intents/${intent.intent_id}/`])
      expect((await cashier.refused("intent_unknown", "GET", unknown)).status).toBe(404);
    expect((await cashier.refused("intent_unknown", "POST", `${station}/intents/999999/attest/`)).status).toBe(404);
    expect((await cashier.refused("intent_unknown", "POST", `${station}/intents/999999/cancel/`)).status).toBe(404);
    await cashier.good("POST", path(intent, "cancel/"));
  });
});

describe("an intent that has left the station's state", () => {
  it("read from the audit log, as it was at its end", async () => {
    const first = await collect(await openOrder("3.21"), "cash");
    const settled = await cashier.good<Intent>("POST", path(first, "attest/"));
    for (let count = 0; count < STATE_LIMITS.endedIntents; count += 1) {
      await cashier.good("POST", path(await collect(await openOrder("1"), "cash"), "cancel/"));
    }
    const { intents } = await cashier.good<z.infer<typeof intentsSchema>>("GET", `${station}/intents/`);
    expect(intents.map(({ intent_id }) => intent_id)).not.toContain(first.intent_id);
    expect(intents).toHaveLength(STATE_LIMITS.endedIntents);
    const recalled = await cashier.good<Intent>("GET", path(first));
    expect(recalled).toEqual(settled);
  });
});
