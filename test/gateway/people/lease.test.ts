/** One cashier drives a station, and the others see who. `presence-and-lease.test.ts` tests the lapse of a lease. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { leaseSchema } from "../../../gateway/api/cashier/leases.ts";
import type { orderSchema } from "../../../gateway/api/cashier/orders.ts";
import type { stationsSchema } from "../../../gateway/api/cashier/stations.ts";
import { logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Lease = z.infer<typeof leaseSchema>;

const TEN_MINUTES = { body: { lifetime_seconds: 600 } };

let system: TestSystem;
let owner: Person;
let ada: Person;
let ben: Person;
let station: string;
let order: z.infer<typeof orderSchema>;

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const details = { email: "ben@sandbox.example", password: "a long enough password" };
  await owner.good("POST", "users/", { body: { ...details, name: "Ben", role: "cashier" } });
  ada = await logIn(system.baseUrl, "cashier", system.cashier);
  ben = await logIn(system.baseUrl, "cashier", details);
  station = `stations/${system.sandbox.stations[0]?.stationId}`;
  const body = { lines: [{ name: "Soup", quantity: 1, unit_amount: "5.00" }] };
  order = await ada.good("POST", `${station}/orders/`, { body });
});
afterAll(() => system.stop());

const create = () => ({ body: { order_id: order.order_id, route: "cash" } });

describe("a station without a lease", () => {
  it("an intent and a renewal: refused, because both need a lease", async () => {
    expect(await ada.good<Lease>("GET", `${station}/lease/`)).toEqual({ lease: null, lost_lease: null });
    expect((await ada.refused("lease_required", "POST", `${station}/intents/`, create())).status).toBe(409);
    expect((await ada.refused("lease_required", "PUT", `${station}/lease/`)).status).toBe(409);
  });

  it("a release by any cashier: nothing changes", async () => {
    expect(await ben.good<Lease>("DELETE", `${station}/lease/`)).toEqual({ lease: null, lost_lease: null });
  });
});

describe("a station that a cashier has leased", () => {
  it("every cashier sees the holder, and the holder sees that the lease is `mine`", async () => {
    const { lease } = await ada.good<Lease>("POST", `${station}/lease/`, TEN_MINUTES);
    expect(lease).toMatchObject({ cashier_id: ada.userId, cashier_name: ada.name, mine: true });
    const heldMs = Date.parse(lease?.expires_at ?? "") - Date.parse(lease?.acquired_at ?? "");
    expect(heldMs).toBe(600_000);
    expect(await ben.good<Lease>("GET", `${station}/lease/`)).toEqual({
      lease: { ...lease, mine: false },
      lost_lease: null,
    });
    const { stations } = await ben.good<z.infer<typeof stationsSchema>>("GET", "stations/");
    expect(stations[0]).toMatchObject({ lease: { cashier_id: ada.userId }, active_intent_id: null });
    expect(stations.map(({ station_id }) => station_id)).toEqual(
      stations.map(({ station_id }) => station_id).toSorted((a, b) => a - b),
    );
  });

  it("each request of another cashier: refused with the holder's name", async () => {
    const intent = await ada.good<z.infer<typeof intentSchema>>("POST", `${station}/intents/`, create());
    const tries = [
      ["POST", "lease/"],
      ["PUT", "lease/"],
      ["DELETE", "lease/"],
      ["POST", "intents/", create()],
      ["POST", `intents/${intent.intent_id}/attest/`],
      ["POST", `intents/${intent.intent_id}/cancel/`],
    ] as const;
    for (const [method, tail, sending] of tries) {
      const refused = await ben.refused("station_leased", method, `${station}/${tail}`, sending);
      expect(refused).toMatchObject({ status: 409, body: { reason: ada.name } });
    }
    const { stations } = await ben.good<z.infer<typeof stationsSchema>>("GET", "stations/");
    expect(stations[0]?.active_intent_id).toBe(intent.intent_id);
    await ada.good("POST", `${station}/intents/${intent.intent_id}/cancel/`);
  });

  it("a renewal: the holder keeps the lease; a release: another cashier can acquire it", async () => {
    const before = await ada.good<Lease>("GET", `${station}/lease/`);
    const renewed = await ada.good<Lease>("PUT", `${station}/lease/`, { body: { lifetime_seconds: 1_200 } });
    expect(renewed.lease?.acquired_at).toBe(before.lease?.acquired_at);
    expect(Date.parse(renewed.lease?.expires_at ?? "")).toBeGreaterThan(Date.parse(before.lease?.expires_at ?? ""));
    expect(await ada.good<Lease>("DELETE", `${station}/lease/`)).toEqual({ lease: null, lost_lease: null });
    const { lease } = await ben.good<Lease>("POST", `${station}/lease/`);
    expect(lease).toMatchObject({ cashier_id: ben.userId, mine: true });
  });

  it("many requests for the lease at once: exactly one cashier gets it", async () => {
    await ben.good("DELETE", `${station}/lease/`);
    const answers = await Promise.all(
      [ada, ben, ada, ben].map((who) => who.call<Lease>("POST", `${station}/lease/`, TEN_MINUTES)),
    );
    const holders = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body.lease?.cashier_id));
    expect(holders.size).toBe(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(2);
  });

  it("a lifetime out of bounds: refused", async () => {
    for (const lifetime_seconds of [29, 3_601, 60.5, "600"])
      await ada.refused("invalid_request", "POST", `${station}/lease/`, { body: { lifetime_seconds } });
  });
});
