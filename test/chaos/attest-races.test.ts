/**
 * An attestation at the same time as other attestations or a change of its order, over HTTP and through two gateways.
 * `test/stations/races.test.ts` has an attestation at the same time as a cancellation or an expiry.
 */
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../gateway/api/cashier/intent-json.ts";
import type { orderSchema } from "../../gateway/api/cashier/orders.ts";
import { type GatewayProcess, startGatewayProcess } from "../gateway/gateway-process.ts";
import { type ApiClient, apiClient } from "../support/api-client.ts";
import { enrollSandboxDevice, type TestDevice } from "../support/devices.ts";
import type { Answer, Refused } from "../support/http.ts";
import { oneLine, openTill } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

const ATTEST_ROUNDS = 20;
const CHANGE_ROUNDS = 80;
/**
 * The commands of a race start within this time, so that each is sometimes the first. For new lines, the gateway makes two
 * requests, and one for a void. So the attestation may start later there.
 */
const LONGEST_HEAD_START_MS = { void: 12, lines: 30 };

let system: TestSystem;
let second: GatewayProcess;
/** The same cashier, as a client of each gateway. */
let cashiers: readonly [ApiClient, ApiClient];
let companion: TestDevice;
let station: string;
let sql: postgres.Sql;

beforeAll(async () => {
  system = await sharedSystem();
  second = await startGatewayProcess(system.nats.url);
  const till = await openTill(system);
  station = till.station;
  cashiers = [till.cashier, apiClient(`${second.baseUrl}/api/cashier/v1/`, till.cashier.token)];
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  sql = postgres(system.database.url, { max: 1 });
});
afterAll(async () => {
  await sql.end();
  await second.stop();
  await system.stop();
});

async function begin(route: string, price: string): Promise<{ order: Order; intent: Intent }> {
  const [cashier] = cashiers;
  const order = await cashier.good<Order>("POST", `${station}/orders/`, { body: oneLine(price) });
  const intent = await cashier.good<Intent>("POST", `${station}/intents/`, {
    body: { order_id: order.order_id, route },
  });
  return { order, intent };
}

async function salesOf(orderId: number): Promise<{ intent_id: number; amount: string }[]> {
  return await sql<{ intent_id: number; amount: string }[]>`
    select intent_id::int, (amount_minor / 100.0)::numeric(12, 2)::text as amount from transactions
    where order_id = ${orderId}`;
}

describe("an intent attested many times at once", () => {
  const attest = (intent: Intent, key: string, at: number): Promise<Answer<Intent & Refused>> =>
    (cashiers[at % 2] as ApiClient).call("POST", `${station}/intents/${intent.intent_id}/attest/`, { key });

  it(`${ATTEST_ROUNDS} rounds: settled once; all requests with one key succeed, and the other keys get a reason`, async () => {
    for (let round = 0; round < ATTEST_ROUNDS; round += 1) {
      const { order, intent } = await begin("cash", "3.10");
      const keys = ["a", "a", "a", "b", "b", "c", "d", "a"];
      const answers = await Promise.all(
        keys.map(async (key, index) => ({ key, answer: await attest(intent, `${round}-${key}`, index) })),
      );
      const winners = answers.filter(({ answer }) => answer.status === 200);
      const [winner] = winners;
      expect(winner?.answer.body).toMatchObject({ status: "succeeded", intent_id: intent.intent_id });
      // Exactly the requests with one key succeed, all with the same text.
      expect(answers.filter(({ key }) => key === winner?.key)).toEqual(winners);
      for (const { answer } of winners) expect(answer.text).toBe(winner?.answer.text);
      for (const { key, answer } of answers) {
        if (key === winner?.key) continue;
        expect(answer.status, answer.text).toBe(409);
        expect(["settlement_in_progress", "intent_not_actionable"]).toContain(answer.body.code);
      }
      expect(await salesOf(order.order_id)).toEqual([{ intent_id: intent.intent_id, amount: "3.10" }]);
    }
  });

  it("the companion has reported a reference, and the cashier types another one: the companion's is stored", async () => {
    await companion.good("POST", "heartbeat/", { body: {} });
    const { order_id } = await cashiers[0].good<Order>("POST", `${station}/orders/`, { body: oneLine("4.00") });
    const path = `${station}/intents/`;
    await expect
      .poll(async () => (await cashiers[0].call("GET", `${station}/routes/`)).text)
      .toContain('"route":"smart_pos","offered":true');
    const intent = await cashiers[0].good<Intent>("POST", path, { body: { order_id, route: "smart_pos" } });
    const report = { intent_id: intent.intent_id, outcome: "reported_success", provider_reference: "SLIP-9" };
    await companion.good("POST", "assignment/report/", { body: report });
    const sending = { key: "typed", body: { reference: "TYPED" } };
    const attested = await cashiers[0].call<Intent>("POST", `${path}${intent.intent_id}/attest/`, sending);
    expect(attested).toMatchObject({ status: 200, body: { attestation: { reference: "SLIP-9" } } });
  });
});

describe("an order that changes during an attestation", () => {
  it(`${CHANGE_ROUNDS} rounds: it is paid with the amount that the guest saw, or not paid`, async () => {
    const ends = new Map<string, number>();
    for (let round = 0; round < CHANGE_ROUNDS; round += 1) {
      const { order, intent } = await begin("cash", "5.00");
      const path = `${station}/intents/${intent.intent_id}/`;
      const orderPath = `orders/${order.order_id}/`;
      const isVoided = round % 2 === 0;
      const [attested, changed] = await Promise.all([
        late(LONGEST_HEAD_START_MS[isVoided ? "void" : "lines"], () =>
          cashiers[0].call<Intent & Refused>("POST", `${path}attest/`, { key: `${round}` }),
        ),
        late(LONGEST_HEAD_START_MS.void, () =>
          isVoided
            ? cashiers[1].call<Order & Refused>("POST", `${orderPath}void/`)
            : cashiers[1].call<Order & Refused>("PUT", `${orderPath}lines/`, { body: oneLine("6.00") }),
        ),
      ]);
      const end = [attested, changed].map(({ status, body }) => (status === 200 ? "done" : body.code)).join(" / ");
      ends.set(end, (ends.get(end) ?? 0) + 1);
      const after = await cashiers[0].good<Order>("GET", orderPath);
      const sales = await salesOf(order.order_id);
      if (attested.status === 200) {
        expect(end).toBe("done / conflict");
        expect(after).toMatchObject({ status: "paid", total: "5.00", transaction: { amount: "5.00" } });
        expect(sales).toEqual([{ intent_id: intent.intent_id, amount: "5.00" }]);
      } else {
        // A void has two outcomes: the seam refuses the attestation, or the station has ended the collection before.
        const refusals = isVoided ? ["order_voided / done", "intent_not_actionable / done"] : ["order_changed / done"];
        expect(refusals).toContain(end);
        expect(after).toMatchObject(isVoided ? { status: "voided" } : { status: "open", total: "6.00" });
        expect([after.transaction, sales]).toEqual([null, []]);
        if (isVoided) {
          // The station has ended the collection of the voided order.
          const gone = { status: "cancelled", end_reason: "order_voided", attestation: null };
          await vi.waitFor(async () => expect(await cashiers[0].good("GET", path)).toMatchObject(gone), 5_000);
        } else {
          // The intent is created again, and the cashier cancels it.
          expect(await cashiers[0].good("GET", path)).toMatchObject({ status: "created", attestation: null });
          await cashiers[0].good("POST", `${path}cancel/`);
        }
      }
    }
    process.stderr.write(`order against attestation: ${JSON.stringify(Object.fromEntries(ends))}\n`);
    // The test proves something only when each command was sometimes the first. A void has two outcomes.
    const won = (...ways: readonly string[]): number => ways.reduce((sum, way) => sum + (ends.get(way) ?? 0), 0);
    expect(won("done / conflict")).toBeGreaterThan(3);
    expect(won("order_changed / done")).toBeGreaterThan(3);
    expect(won("order_voided / done", "intent_not_actionable / done")).toBeGreaterThan(3);
  });

  async function late<T>(longestMs: number, send: () => Promise<T>): Promise<T> {
    await delay(Math.random() * longestMs);
    return await send();
  }
});
