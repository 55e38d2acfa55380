/**
 * Cash and the attested terminal need the registry, the relay, settlement and the stations. No other service runs here. A
 * request to another service gets no answer, as from a stalled process, and fails the test.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { orderSchema } from "../../../gateway/api/cashier/orders.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { openTill, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

let system: TestSystem;
let cashier: Person;
let station: string;
/** The subjects of requests to services that do not run. */
const requests: string[] = [];

beforeAll(async () => {
  system = await startSystem({ services: ["registry", "settlement", "relay"] });
  for (const service of ["audit", "providers", "robotics", "webhooks"])
    system.bus.nc.subscribe(`${service}.>`, { callback: (_, { subject }) => void requests.push(subject) });
  ({ cashier, station } = await openTill(system));
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
const cancel = ({ intent_id }: Intent): Promise<Intent> =>
  cashier.good("POST", `${station}/intents/${intent_id}/cancel/`, { headers: { "Idempotency-Key": `x-${intent_id}` } });
const attest = ({ intent_id }: Intent): Promise<Intent> =>
  cashier.good("POST", `${station}/intents/${intent_id}/attest/`, {
    body: { reference: `SLIP-${intent_id}` },
    headers: { "Idempotency-Key": `a-${intent_id}` },
  });

const open = (): Promise<Order> =>
  cashier.good("POST", `${station}/orders/`, {
    body: { lines: [{ name: "Soup", quantity: 1, unit_amount: "9.90" }] },
  });

async function collect(route: string): Promise<Collection> {
  const order = await open();
  const created = await create(order.order_id, route);
  return { order, created, settled: await attest(created) };
}

afterEach(() => expect(requests).toEqual([]));

describe("cash and the attested terminal without other services", () => {
  it.each(["cash", "attested_terminal"])(
    "%s cancelled: the same key gets the same answer, and all reads succeed",
    async (route) => {
      const order = await open();
      const created = await create(order.order_id, route);
      const cancelled = await cancel(created);
      expect(cancelled.status).toBe("cancelled");
      expect(await cancel(created)).toEqual(cancelled);
      expect(await cashier.good("GET", `${station}/intents/${created.intent_id}/`)).toEqual(cancelled);
      const { intents } = await cashier.good<{ intents: Intent[] }>("GET", `${station}/intents/`);
      expect(intents[0]).toEqual(cancelled);
      const { orders } = await cashier.good<{ orders: Order[] }>("GET", `${station}/orders/`);
      expect(orders.map(({ order_id }) => order_id)).toContain(order.order_id);
      const { routes } = await cashier.good<{ routes: object[] }>("GET", `${station}/routes/`);
      expect(routes).toContainEqual(expect.objectContaining({ route, offered: true }));
      await cashier.good("POST", `orders/${order.order_id}/void/`);
    },
  );

  it("a repeated key: gets its first answer, and each order is paid once", async () => {
    const collections: Collection[] = [];
    // The last collections push the replies and intents of the first ones out of the station's state.
    for (let turn = 0; turn <= STATE_LIMITS.replies; turn += 1)
      collections.push(await collect(turn % 2 === 0 ? "cash" : "attested_terminal"));
    for (const { order, created, settled } of collections) {
      expect(settled.status).toBe("succeeded");
      expect(await create(order.order_id, created.route)).toEqual(created);
      expect(await attest(created)).toEqual(settled);
      const paid = await cashier.good<Order>("GET", `orders/${order.order_id}/`);
      expect(paid).toMatchObject({ status: "paid", transaction: { intent_id: created.intent_id } });
      // The gateway can still read the oldest collection.
      expect(await cashier.good<Intent>("GET", `${station}/intents/${created.intent_id}/`)).toEqual(settled);
    }
  });
});
