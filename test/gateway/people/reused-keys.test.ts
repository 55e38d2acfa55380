/** An Idempotency-Key with another body, at each route that accepts one; and the key of a lease after that lease has ended. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { leaseSchema } from "../../../gateway/api/cashier/leases.ts";
import type { orderSchema } from "../../../gateway/api/cashier/orders.ts";
import { creationHeaderSchema } from "../../../gateway/http/command-id.ts";
import { routes } from "../../../gateway/routes.ts";
import type { ApiClient } from "../../support/api-client.ts";
import { addFleet, offerBody, type TestFleet } from "../../support/fleets.ts";
import { logIn, oneLine, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Lease = z.infer<typeof leaseSchema>;
type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

let system: TestSystem;
let owner: Person;
let ada: Person;
let ben: Person;
let station: string;
let fleet: TestFleet;

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const details = { email: "ben@sandbox.example", password: "a long enough password" };
  await owner.good("POST", "users/", { body: { ...details, name: "Ben", role: "cashier" } });
  ada = await logIn(system.baseUrl, "cashier", system.cashier);
  ben = await logIn(system.baseUrl, "cashier", details);
  station = `stations/${system.sandbox.stations[0]?.stationId}`;
  fleet = await addFleet(system.baseUrl, owner, system.sandbox.filialId);
});
afterAll(() => system.stop());

const openOrder = (): Promise<Order> => ada.good("POST", `${station}/orders/`, { body: oneLine("2.00") });
const acquire = (who: Person, body = {}, key?: string): Promise<Lease> =>
  who.good("POST", `${station}/lease/`, key === undefined ? { body } : { body, key });

interface Reuse {
  readonly by: ApiClient;
  readonly path: string;
  readonly body: object;
  readonly others: readonly object[];
}

/** One entry for each operation with an Idempotency-Key and a body. In each of `others`, another field has changed. */
const reuses: Readonly<Record<string, () => Promise<Reuse>>> = {
  cashier_acquire_lease: async () => ({
    by: ada,
    path: `${station}/lease/`,
    body: { lifetime_seconds: 600 },
    others: [{}, { lifetime_seconds: 601 }, { lifetime_seconds: 600, take_over_from: ben.userId }],
  }),
  cashier_open_order: async () => ({
    by: ada,
    path: `${station}/orders/`,
    body: oneLine("2.00"),
    others: [
      oneLine("2.01"),
      { lines: [{ name: "Tea", quantity: 1, unit_amount: "2.00" }] },
      { lines: [{ name: "Soup", quantity: 2, unit_amount: "2.00" }] },
    ],
  }),
  cashier_create_intent: async () => {
    const body = { order_id: (await openOrder()).order_id, route: "cash", lifetime_seconds: 60 };
    const others = [
      { ...body, order_id: (await openOrder()).order_id },
      { ...body, route: "attested_terminal" },
      { ...body, lifetime_seconds: 61 },
    ];
    return { by: ada, path: `${station}/intents/`, body, others };
  },
  cashier_attest_intent: async () => {
    const body = { order_id: (await openOrder()).order_id, route: "attested_terminal" };
    const { intent_id } = await ada.good<Intent>("POST", `${station}/intents/`, { body });
    const path = `${station}/intents/${intent_id}/attest/`;
    return { by: ada, path, body: { reference: `T-${intent_id}` }, others: [{ reference: `U-${intent_id}` }] };
  },
  backoffice_offer_serving_task: async () => {
    const body = offerBody(fleet.consumerId);
    return { by: owner, path: "serving-tasks/", body, others: [{ ...body, leg: "courier" }] };
  },
};

/** `creation-keys.test.ts` tests the creations with a key. */
const keyed = routes.filter(
  ({ headers }) => headers !== undefined && headers !== creationHeaderSchema && "Idempotency-Key" in headers.shape,
);

describe("an Idempotency-Key with another body", () => {
  beforeEach(async () => {
    const { lease } = await ada.good<Lease>("GET", `${station}/lease/`);
    await acquire(ada, lease === null || lease.mine ? {} : { take_over_from: lease.cashier_id });
    const { intents } = await ada.good<{ intents: Intent[] }>("GET", `${station}/intents/`);
    for (const { intent_id, cancel_offered } of intents)
      if (cancel_offered) await ada.good("POST", `${station}/intents/${intent_id}/cancel/`);
  });

  it("`reuses`: has each operation that accepts a key and a body", () => {
    const withBody = keyed.filter(({ body }) => body !== undefined).map(({ operationId }) => operationId);
    expect(Object.keys(reuses).toSorted()).toEqual(withBody.toSorted());
  });

  it.each(Object.entries(reuses))("%s: refused, and the first request's effect stays", async (operationId, reuseOf) => {
    const { by, path, body, others } = await reuseOf();
    const key = `reused-${operationId}`;
    const first = await by.good("POST", path, { body, key });
    for (const other of others)
      expect((await by.refused("idempotency_key_reused", "POST", path, { body: other, key })).status).toBe(422);
    expect(await by.good("POST", path, { body, key })).toEqual(first);
    const route = keyed.find((each) => each.operationId === operationId);
    expect(route?.errors).toContain("idempotency_key_reused");
  });
});

describe("a repeated request with the key of a lease", () => {
  const acquireFree = async (key: string): Promise<Lease> => {
    const { lease } = await ada.good<Lease>("GET", `${station}/lease/`);
    if (lease !== null) await owner.good("DELETE", `${station}/lease/`);
    return await acquire(ada, {}, key);
  };
  const again = (key: string) => ["POST", `${station}/lease/`, { body: {}, key }] as const;

  it("after a renewal of the lease: the lease as it is now", async () => {
    await acquireFree("renewed");
    const renewed = await ada.good<Lease>("PUT", `${station}/lease/`, { body: { lifetime_seconds: 1_800 } });
    expect(await ada.good<Lease>(...again("renewed"))).toEqual(renewed);
  });

  it("after a take-over by another cashier: refused with the name of the holder, who keeps the station", async () => {
    await acquireFree("taken over");
    await acquire(ben, { take_over_from: ada.userId });
    const refused = await ada.refused("station_leased", ...again("taken over"));
    expect(refused).toMatchObject({ status: 409, body: { reason: ben.name } });
    const other = { body: { take_over_from: ben.userId, lifetime_seconds: 600 }, key: "taken over" };
    await ada.refused("idempotency_key_reused", "POST", `${station}/lease/`, other);
    expect((await ben.good<Lease>("GET", `${station}/lease/`)).lease?.mine).toBe(true);
  });

  it.each([
    ["released", () => ada.good("DELETE", `${station}/lease/`)],
    ["broken by the owner", () => owner.good("DELETE", `${station}/lease/`)],
  ])("after the lease was %s: refused, and the station stays free", async (how, end) => {
    await acquireFree(how);
    await end();
    const { body } = await ada.refused("lease_required", ...again(how));
    expect(body.detail).toMatch(/new key/);
    expect((await ada.good<Lease>("GET", `${station}/lease/`)).lease).toBeNull();
  });

  it("a repeated release with a key: releases no later lease, and returns the lease as it is now", async () => {
    await acquireFree("first");
    const release = ["DELETE", `${station}/lease/`, { key: "release" }] as const;
    expect((await ada.good<Lease>(...release)).lease).toBeNull();
    const { lease } = await acquire(ada, {}, "second");
    expect((await ada.good<Lease>(...release)).lease).toEqual(lease);
    expect((await ada.good<Lease>("GET", `${station}/lease/`)).lease).toEqual(lease);
  });
});
