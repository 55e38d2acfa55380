/** A dynamic QR over HTTP with the sandbox provider: what the cashier, the displays and the operator see. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addDevice, type TestDevice } from "../../support/devices.ts";
import { signature } from "../../support/emvco-settings.ts";
import { type Answer, type Refused, send } from "../../support/http.ts";
import { addOperator, logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

interface Order {
  readonly order_id: number;
  readonly order_display_number: number;
  readonly status: string;
}
interface Intent {
  readonly intent_id: number;
  readonly status: string;
  readonly end_reason: string;
  readonly settle_offered: boolean;
  readonly provider: { readonly qr_payload: string; readonly provider_reference: string } | null;
  readonly attestation: Record<string, unknown> | null;
}
interface Display {
  readonly state: string;
  readonly qr_payload: string;
  readonly amount: string;
}
interface Issue {
  readonly issue_id: number;
  readonly kind: string;
  readonly status: string;
  readonly intent_id: number;
  readonly amount: string;
}

const SETTLED_WITHIN_MS = 15_000;

let system: TestSystem;
let owner: Person;
let cashier: Person;
let operator: Person;
let station: string;
let qrDisplay: TestDevice;
let plainDisplay: TestDevice;

interface Timeline {
  readonly status: string;
  readonly money_moved: string;
  readonly summary: string;
  readonly entries: readonly {
    readonly at: string;
    readonly type: string;
    readonly actor: { readonly kind: string };
  }[];
}

beforeAll(async () => {
  // The provider decides after 1.5 s, so that the test can read the QR from two displays within their throttle.
  system = await sharedSystem({ sandboxProvider: true });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  operator = await addOperator(system.baseUrl, owner);
  const stationId = system.sandbox.stations[0]?.stationId ?? 0;
  station = `stations/${stationId}`;
  qrDisplay = await newDisplay(stationId, ["display_total", "qr_dynamic_present"]);
  plainDisplay = await newDisplay(stationId, ["display_total"]);
  await cashier.good("POST", `${station}/lease/`);
});
afterAll(() => system.stop());

async function newDisplay(station_id: number, capabilities: readonly string[]): Promise<TestDevice> {
  const facts = { station_id, name: capabilities.join(" "), kind: "customer_display", capabilities };
  return await addDevice(system.baseUrl, owner, facts);
}

async function openOrder(amount: string): Promise<Order> {
  const body = { lines: [{ name: "Soup", quantity: 1, unit_amount: amount }] };
  return cashier.good<Order>("POST", `${station}/orders/`, { body });
}

const collect = (order: Order, more: object = {}): Promise<Intent> =>
  cashier.good<Intent>("POST", `${station}/intents/`, {
    body: { order_id: order.order_id, route: "dynamic_qr", ...more },
  });
const read = ({ intent_id }: Intent): Promise<Intent> =>
  cashier.good<Intent>("GET", `${station}/intents/${intent_id}/`);

const openIssueOf = async ({ intent_id }: Intent): Promise<Issue | undefined> =>
  (await operator.good<{ issues: Issue[] }>("GET", "issues/?status=open")).issues.find(
    (issue) => issue.intent_id === intent_id,
  );

async function until(intent: Intent, status: string): Promise<Intent> {
  await expect.poll(async () => (await read(intent)).status, { timeout: SETTLED_WITHIN_MS, interval: 50 }).toBe(status);
  return read(intent);
}

describe("a collection by dynamic QR", () => {
  it("paid by the guest: displays that can render the QR show it, and the provider's callback pays the order once", async () => {
    const order = await openOrder("12.50");
    const intent = await until(await collect(order), "presented");
    expect(intent.provider?.qr_payload).toMatch(/^http/);
    expect(await qrDisplay.good<Display>("GET", "display/")).toMatchObject({
      state: "qr",
      qr_payload: intent.provider?.qr_payload,
      amount: "12.50",
    });
    expect(await plainDisplay.good<Display>("GET", "display/")).toMatchObject({ state: "total", qr_payload: "" });
    const paid = await until(intent, "succeeded");
    expect(paid.attestation).toMatchObject({ by: "provider", cashier_id: null });
    expect(paid.provider).toMatchObject({ qr_payload: "", provider_reference: intent.provider?.provider_reference });
    expect(await cashier.good<Order>("GET", `orders/${order.order_id}/`)).toMatchObject({
      status: "paid",
      transaction: { route: "dynamic_qr", amount: "12.50", intent_id: intent.intent_id },
    });
    expect(await qrDisplay.good<Display>("GET", "display/")).toMatchObject({ state: "paid", qr_payload: "" });
  });

  it("confirmed, but refused by settlement: the cashier attests, and each repetition gets the same answer", async () => {
    const order = await openOrder("12.60");
    const intent = await until(await collect(order), "presented");
    const sql = postgres(system.database.url, { max: 1 });
    // The seam finds another amount than the station has. So the confirmed payment waits for the cashier.
    await sql`update orders set total_minor = total_minor + 1 where order_id = ${order.order_id}`;
    // During its settlement it is also `processing`, but then nothing is offered.
    const isRefused = async () => {
      const { status, settle_offered } = await read(intent);
      return status === "processing" && settle_offered;
    };
    await expect.poll(isRefused, { timeout: SETTLED_WITHIN_MS, interval: 50 }).toBe(true);
    await sql`update orders set total_minor = total_minor - 1 where order_id = ${order.order_id}`;
    await sql.end();
    const path = `${station}/intents/${intent.intent_id}/attest/`;
    const attest = (body: object) => cashier.good<Intent>("POST", path, { key: "typed", body });
    const first = await attest({ reference: "SLIP-TYPED" });
    expect(first).toMatchObject({
      status: "succeeded",
      attestation: { by: "cashier", reference: intent.provider?.provider_reference },
    });
    expect(await attest({ reference: "SLIP-TYPED" })).toEqual(first);
    // The typed reference does not change the settlement, so a request with another reference is the same request.
    expect(await attest({ reference: "SLIP-OTHER" })).toEqual(first);
    expect(await attest({})).toEqual(first);
    expect(await cashier.good<Order>("GET", `orders/${order.order_id}/`)).toMatchObject({
      status: "paid",
      transaction: { intent_id: intent.intent_id, reference: intent.provider?.provider_reference },
    });
  });

  it("declined by the provider: it ends with the reason, and the order may be collected again", async () => {
    const order = await openOrder("12.01");
    const ended = await until(await collect(order), "cancelled");
    expect(ended.end_reason).toBe("payment_declined");
    const again = await cashier.good<Intent>("POST", `${station}/intents/`, {
      body: { order_id: order.order_id, route: "cash" },
    });
    await cashier.good("POST", `${station}/intents/${again.intent_id}/attest/`);
  });

  it("the provider is down: it ends at once with the reason", async () => {
    const ended = await until(await collect(await openOrder("12.13")), "cancelled");
    expect(ended.end_reason).toBe("provider_unavailable");
  });

  it("shown and cancelled: the order's next collection needs the cashier's confirmation", async () => {
    const order = await openOrder("12.03");
    const intent = await until(await collect(order), "presented");
    await cashier.good("POST", `${station}/intents/${intent.intent_id}/cancel/`);
    const body = { order_id: order.order_id, route: "cash" };
    const answer = await cashier.call<Refused>("POST", `${station}/intents/`, { body });
    // The provider may already have reported that nothing was paid. Then there is nothing to confirm.
    if (answer.status === 409) {
      expect(answer.body).toMatchObject({ code: "money_may_have_moved", earlier_intent_id: intent.intent_id });
      const confirmed = { ...body, confirms_money_may_have_moved: true };
      const second = await cashier.good<Intent>("POST", `${station}/intents/`, { body: confirmed });
      await cashier.good("POST", `${station}/intents/${second.intent_id}/attest/`);
    } else {
      expect(answer.status).toBe(201);
      const { intent_id } = answer.body as unknown as Intent;
      await cashier.good("POST", `${station}/intents/${intent_id}/attest/`);
    }
  });

  it("the provider is frozen: the route is withdrawn with the reason, and offered again afterwards", async () => {
    interface Routes {
      readonly routes: readonly { readonly route: string; readonly offered: boolean; readonly reason: string | null }[];
    }
    const offer = async () =>
      (await cashier.good<Routes>("GET", `${station}/routes/`)).routes.find(({ route }) => route === "dynamic_qr");
    const list = await owner.good<{ provider_configs: { config_id: number }[] }>("GET", "provider-configs/");
    const config = `provider-configs/${list.provider_configs[0]?.config_id}`;
    await owner.good("POST", `${config}/freeze/`, { body: { reason: "A test of the switch" } });
    expect(await offer()).toMatchObject({ offered: false, reason: "provider_frozen" });
    const body = { order_id: (await openOrder("12.50")).order_id, route: "dynamic_qr" };
    const refused = await cashier.refused("route_not_offered", "POST", `${station}/intents/`, { body });
    expect(refused.body.reason).toBe("provider_frozen");
    await owner.good("POST", `${config}/unfreeze/`, { body: { reason: "The test has ended" } });
    expect(await offer()).toMatchObject({ offered: true, reason: null });
  });

  it("a payment with another amount: pays nothing, and is an issue that an operator closes", async () => {
    const order = await openOrder("12.07");
    const intent = await until(await collect(order), "presented");
    await expect
      .poll(() => openIssueOf(intent), { timeout: SETTLED_WITHIN_MS, interval: 100 })
      .toMatchObject({ kind: "amount_over" });
    await expect
      .poll(() => read(intent), { timeout: SETTLED_WITHIN_MS })
      .toMatchObject({
        status: "presented",
        money_may_have_moved: "money_differs",
        provider: { qr_payload: "" },
      });
    await cashier.good("POST", `${station}/intents/${intent.intent_id}/cancel/`);
    expect(await read(intent)).toMatchObject({ status: "cancelled", money_may_have_moved: "money_differs" });
    expect(await cashier.good<Order>("GET", `orders/${order.order_id}/`)).toMatchObject({ status: "open" });
    const issue = await openIssueOf(intent);
    const close = `issues/${issue?.issue_id}/close/`;
    const body = { reason: "Paid back at the counter." };
    expect(await operator.good<Issue>("POST", close, { body })).toMatchObject({ status: "closed", ...body });
    expect(await operator.good<Issue>("POST", close, { body })).toMatchObject({ status: "closed", ...body });
    await operator.refused("conflict", "POST", close, { body: { reason: "Lost." } });
    const timeline = await owner.good<Timeline>("GET", `intents/${intent.intent_id}/timeline/`);
    expect(timeline.summary).toContain(
      `and issue ${issue?.issue_id} named it, and Rita closed that issue (reason: Paid back at the counter).`,
    );
    expect(timeline.summary).not.toContain("an issue names it");
    // The provider may report later that its collection has ended, so this entry need not be the last one.
    expect(timeline.entries.find(({ type }) => type === "provider_issue_closed")).toMatchObject({
      actor: { kind: "reconciliation_operator", name: "Rita" },
      sentence: `Rita closed issue ${issue?.issue_id} of the provider's money (amount_over). Reason: Paid back at the counter.`,
      money_moved: "no",
      data: { issue_id: issue?.issue_id, kind: "amount_over", reason: "Paid back at the counter." },
    });
  });

  it("a payment that an operator attributes to the order: its timeline names operator, reason and time", async () => {
    const order = await openOrder("12.09");
    const intent = await until(await collect(order), "presented");
    await expect
      .poll(() => openIssueOf(intent), { timeout: SETTLED_WITHIN_MS, interval: 100 })
      .toMatchObject({ kind: "reference_mismatch" });
    const issue = await openIssueOf(intent);
    await cashier.good("POST", `${station}/intents/${intent.intent_id}/cancel/`);
    const body = { order_id: order.order_id, reason: "The guest showed the receipt." };
    await operator.good("POST", `issues/${issue?.issue_id}/attribute/`, { body });
    const paid = await cashier.good<Order & { transaction: { intent_id: number; transaction_id: number } }>(
      "GET",
      `orders/${order.order_id}/`,
    );
    expect(paid.status).toBe("paid");
    expect(paid.transaction.intent_id).not.toBe(intent.intent_id);
    const timeline = await owner.good<Timeline>("GET", `intents/${paid.transaction.intent_id}/timeline/`);
    expect(timeline).toMatchObject({ status: "succeeded", money_moved: "yes" });
    expect(timeline.summary).toContain(`transaction ${paid.transaction.transaction_id}`);
    expect(timeline.summary).toContain("Rita attributed it. Reason: The guest showed the receipt.");
    expect(timeline.entries.map(({ type, actor }) => [type, actor.kind])).toEqual([
      ["provider_issue_opened", "provider"],
      ["intent_succeeded", "settlement"],
      ["provider_issue_attributed", "reconciliation_operator"],
    ]);
    const listed = await owner.good<{ payments: object[] }>("GET", `payments/?search=${order.order_display_number}`);
    expect(listed.payments).toContainEqual(
      expect.objectContaining({ intent_id: paid.transaction.intent_id, status: "succeeded", amount: "12.09" }),
    );
    const moments = timeline.entries.map(({ at }) => at);
    expect(moments).toEqual(moments.toSorted());
    // The station has no such collection, so only its timeline exists. The timeline of the first collection names it.
    await cashier.refused("intent_unknown", "GET", `${station}/intents/${paid.transaction.intent_id}/`);
    const first = await owner.good<Timeline>("GET", `intents/${intent.intent_id}/timeline/`);
    expect(first.entries.find(({ type }) => type === "provider_issue_attributed")).toMatchObject({
      actor: { kind: "reconciliation_operator", name: "Rita" },
      data: { attribution_intent_id: paid.transaction.intent_id, transaction_id: paid.transaction.transaction_id },
    });
    expect(first.summary).toContain(`as transaction ${paid.transaction.transaction_id}`);
  });
});

describe("a callback that is refused", () => {
  const callback = (configId: number, body: string, headers: Record<string, string>): Promise<Answer<Refused>> =>
    send<Refused>(system.baseUrl, "POST", `/api/providers/v1/${configId}/callback/`, { body, headers });
  const forged = (body: string): Record<string, string> => ({
    "x-provider-signature": signature(body, "not the secret"),
    "content-type": "application/json",
  });

  it("a wrong signature, no signature or an unknown config: the same answer", async () => {
    const { provider_configs } = await owner.good<{ provider_configs: { config_id: number }[] }>(
      "GET",
      "provider-configs/",
    );
    const configId = provider_configs[0]?.config_id ?? 0;
    const body = JSON.stringify({ type: "payment.paid" });
    const answers = [
      await callback(configId, body, forged(body)),
      await callback(configId, body, {}),
      await callback(987_654, body, forged(body)),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(401);
      // The answers are equal except for the id of the request.
      expect({ ...answer.body, request_id: "" }).toEqual({ ...answers[0]?.body, request_id: "" });
      expect(answer.body).toMatchObject({ code: "signature_invalid" });
    }
  });

  it("a body that is too large: refused before the signature is checked", async () => {
    expect((await callback(1, "x".repeat(17 * 1_024), {})).status).toBe(413);
  });
});
