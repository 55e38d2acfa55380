/** Cash and the attested terminal need the registry, the relay, settlement and the stations: no other service runs here. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { z } from "zod";
import type { orderSchema } from "../../../gateway/contract/cashier.ts";
import type { intentSchema } from "../../../gateway/contract/intent.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { logIn, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

let system: TestSystem;
let cashier: Person;
let station: string;

beforeAll(async () => {
  system = await startSystem({ services: ["registry", "settlement", "relay"] });
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`);
});
afterAll(() => system.stop());

interface Collection {
  readonly order: Order;
  readonly created: Intent;
  readonly settled: Intent;
}

const create = (order_id: number, route: string): Promise<Intent> =>
  cashier.good("POST", `${station}/intents/`, {
    body: { order_id, route },
    headers: { "Idempotency-Key": `c-${order_id}` },
  });
const attest = ({ intent_id }: Intent): Promise<Intent> =>
  cashier.good("POST", `${station}/intents/${intent_id}/attest/`, {
    body: { reference: `SLIP-${intent_id}` },
    headers: { "Idempotency-Key": `a-${intent_id}` },
  });

async function collect(route: string): Promise<Collection> {
  const order = await cashier.good<Order>("POST", `${station}/orders/`, {
    body: { lines: [{ name: "Soup", quantity: 1, unit_amount: "9.90" }] },
  });
  const created = await create(order.order_id, route);
  return { order, created, settled: await attest(created) };
}

it("every key again: the answer that it got first, and each order is paid once", async () => {
  const collections: Collection[] = [];
  // Until both the replies and the intents of the first ones have left the station's state.
  for (let turn = 0; turn <= STATE_LIMITS.replies; turn += 1)
    collections.push(await collect(turn % 2 === 0 ? "cash" : "attested_terminal"));
  for (const { order, created, settled } of collections) {
    expect(settled.status).toBe("succeeded");
    expect(await create(order.order_id, created.route)).toEqual(created);
    expect(await attest(created)).toEqual(settled);
    const paid = await cashier.good<Order>("GET", `orders/${order.order_id}/`);
    expect(paid).toMatchObject({ status: "paid", transaction: { intent_id: created.intent_id } });
    // The slip of the oldest collection can be read, too.
    expect(await cashier.good<Intent>("GET", `${station}/intents/${created.intent_id}/`)).toEqual(settled);
  }
}, 60_000);
