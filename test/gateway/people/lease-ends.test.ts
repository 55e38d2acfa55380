/** A cashier who has left never blocks a station: what ends a lease, and who can take it over. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { stationEventsSchema } from "../../../gateway/api/backoffice/events.ts";
import type { timelineSchema } from "../../../gateway/api/backoffice/timelines.ts";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { leaseSchema } from "../../../gateway/api/cashier/leases.ts";
import { LIMITS } from "../../../gateway/limits.ts";
import { closeDatabase, openDatabase } from "../../../services/db/pool.ts";
import { bearer, openLive } from "../../support/live-socket.ts";
import { logIn, newOrder, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { LogIn, TestSystem } from "../../support/system.ts";

type Lease = z.infer<typeof leaseSchema>;
type Intent = z.infer<typeof intentSchema>;

const FREE: Lease = { lease: null, lost_lease: null };
const HOUR = { body: { lifetime_seconds: 3_600 } };

let system: TestSystem;
let owner: Person;
let ben: Person;
let station: string;
let stationId: number;

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  ({ person: ben } = await newCashier("Ben"));
  stationId = system.sandbox.stations[0]?.stationId ?? 0;
  station = `stations/${stationId}`;
});
afterAll(() => system.stop());

let people = 0;
async function newCashier(name: string): Promise<{ person: Person; details: LogIn; userId: number }> {
  const details = { email: `lease-${(people += 1)}@sandbox.example`, password: "the first password" };
  const { user_id: userId } = await owner.good<{ user_id: number }>("POST", "users/", {
    body: { ...details, name, role: "cashier" },
  });
  return { person: await logIn(system.baseUrl, "cashier", details), details, userId };
}

const acquire = (who: Person, more: object = {}) =>
  who.good<Lease>("POST", `${station}/lease/`, { body: { ...HOUR.body, ...more } });
const read = (who: Person) => who.good<Lease>("GET", `${station}/lease/`);
const events = () =>
  owner.good<z.infer<typeof stationEventsSchema>>("GET", `${station}/events/?limit=500`).then((page) => page.events);

async function collect(who: Person): Promise<Intent> {
  const sending = { body: { order_id: await newOrder(who, station, "5.00"), route: "cash" } };
  return await who.good<Intent>("POST", `${station}/intents/`, sending);
}

describe("a station lease", () => {
  it("the holder logs out: the station is free at once, and another cashier can acquire its lease", async () => {
    const { person: ada } = await newCashier("Ada");
    await acquire(ada);
    expect((await ada.call("DELETE", "session/")).status).toBe(204);
    expect(await read(ben)).toEqual(FREE);
    expect((await acquire(ben)).lease).toMatchObject({ cashier_id: ben.userId, mine: true });
    await ben.good("DELETE", `${station}/lease/`);
    expect((await events()).at(-3)).toMatchObject({
      type: "lease_ended",
      actor: { kind: "cashier", id: ada.userId },
      data: { cashier_id: ada.userId },
    });
  });

  it.each<[string, (user: { userId: number; details: LogIn }) => Promise<unknown>]>([
    ["suspension", ({ userId }) => owner.good("POST", `users/${userId}/suspend/`)],
    [
      "new password from the owner",
      ({ userId }) => owner.good("PUT", `users/${userId}/password/`, { body: { password: "a second password" } }),
    ],
    [
      "new password in another session",
      async ({ details }) => {
        const other = await logIn(system.baseUrl, "cashier", details);
        const body = { old_password: details.password, new_password: "a second password" };
        expect((await other.call("PUT", "session/password/", { body })).status).toBe(204);
      },
    ],
  ])("%s: the station is free at once", async (_what, act) => {
    const cashier = await newCashier("Ada");
    await acquire(cashier.person);
    await act(cashier);
    expect(await read(ben)).toEqual(FREE);
  });

  it("a new password in the holder's session: the lease stays", async () => {
    const { person: ada, details } = await newCashier("Ada");
    await acquire(ada);
    const body = { old_password: details.password, new_password: "a second password" };
    await ada.call("PUT", "session/password/", { body });
    expect((await read(ada)).lease).toMatchObject({ mine: true });
    await ada.call("DELETE", "session/");
  });

  it("two sessions of one person: both can collect, and the lease ends with the session that renewed it last", async () => {
    const { person: till, details } = await newCashier("Ada");
    const tablet = await logIn(system.baseUrl, "cashier", details);
    const phone = await logIn(system.baseUrl, "cashier", details);
    await acquire(till);
    const intent = await collect(tablet);
    await tablet.good("POST", `${station}/intents/${intent.intent_id}/cancel/`);
    await phone.call("DELETE", "session/");
    expect((await read(ben)).lease).toMatchObject({ cashier_id: till.userId });
    await tablet.good("PUT", `${station}/lease/`, HOUR);
    await till.call("DELETE", "session/");
    expect((await read(ben)).lease).toMatchObject({ cashier_id: till.userId });
    await tablet.call("DELETE", "session/");
    expect(await read(ben)).toEqual(FREE);
  });

  it("the lifetime of a lease: one hour at most without a renewal", async () => {
    const { person: ada } = await newCashier("Ada");
    await ada.refused("invalid_request", "POST", `${station}/lease/`, { body: { lifetime_seconds: 3_601 } });
    const { lease } = await acquire(ada);
    expect(Date.parse(lease?.expires_at ?? "") - Date.parse(lease?.acquired_at ?? "")).toBe(3_600_000);
    await ada.call("DELETE", "session/");
  });
});

describe("the take-over of a lease", () => {
  it("without the holder's id, or with another id: refused with the holder's name", async () => {
    const { person: ada } = await newCashier("Ada");
    await acquire(ada);
    for (const take_over_from of [undefined, ben.userId, owner.userId]) {
      const sending = { body: { take_over_from } };
      const refused = await ben.refused("station_leased", "POST", `${station}/lease/`, sending);
      expect(refused.body.reason).toBe("Ada");
    }
    expect((await read(ada)).lease).toMatchObject({ mine: true });
    await ada.call("DELETE", "session/");
  });

  it("with the holder's id: the new holder can settle, the first one is notified, the audit log names both", async () => {
    const { person: ada } = await newCashier("Ada");
    await acquire(ada);
    const intent = await collect(ada);
    const live = await openLive(system.baseUrl, stationId, bearer(ada.token));
    await live.until((message) => message.type === "state" && message.lease?.mine === true);

    const taken = await acquire(ben, { take_over_from: ada.userId });
    expect(taken.lease).toMatchObject({ cashier_id: ben.userId, mine: true });
    const lost = { cashier_id: ada.userId, cashier_name: "Ada", reason: "taken_over", by_name: "Ben" };
    expect(taken.lost_lease).toMatchObject({ ...lost, mine: false });
    await live.until((message) => message.type === "state" && message.lost_lease !== null);
    expect(live.state()).toMatchObject({
      lease: { cashier_id: ben.userId, mine: false },
      lost_lease: { ...lost, mine: true },
      active_intent: { intent_id: intent.intent_id, status: "created" },
    });
    await live.close();

    const attest = `${station}/intents/${intent.intent_id}/attest/`;
    expect((await ada.refused("station_leased", "POST", attest)).body.reason).toBe("Ben");
    expect(await ben.good<Intent>("POST", attest)).toMatchObject({ status: "succeeded" });
    expect((await events()).findLast(({ type }) => type === "lease_taken_over")).toMatchObject({
      actor: { kind: "cashier", id: ben.userId, name: "Ben" },
      intent_id: intent.intent_id,
      data: { cashier_id: ben.userId, cashier_name: "Ben", from_cashier_id: ada.userId, from_cashier_name: "Ada" },
    });
    const path = `intents/${intent.intent_id}/timeline/`;
    const { entries } = await owner.good<z.infer<typeof timelineSchema>>("GET", path);
    expect(entries.find(({ type }) => type === "lease_taken_over")?.sentence).toBe(
      "Ben took the station over from Ada.",
    );

    await ada.call("DELETE", "session/");
    expect((await read(ben)).lease).toMatchObject({ mine: true });
    await ben.good("DELETE", `${station}/lease/`);
    await acquire(ben);
    expect((await read(ben)).lost_lease).toBeNull();
    await ben.good("DELETE", `${station}/lease/`);
  });
});

describe("the owner of a leased station", () => {
  it("breaks the lease: the station is free, the holder is notified, and the audit log names both", async () => {
    const { person: ada } = await newCashier("Ada");
    await acquire(ada);
    const intent = await collect(ada);
    expect(await owner.good("GET", `${station}/lease/`)).toMatchObject({ lease: { cashier_name: "Ada" } });
    const broken = { cashier_id: ada.userId, reason: "broken", by_name: owner.name, mine: false };
    expect(await owner.good("DELETE", `${station}/lease/`)).toMatchObject({ lease: null, lost_lease: broken });
    expect(await read(ada)).toMatchObject({ lease: null, lost_lease: { ...broken, mine: true } });
    expect((await events()).at(-1)).toMatchObject({
      type: "lease_broken",
      actor: { kind: "owner", id: owner.userId, name: owner.name },
      intent_id: intent.intent_id,
      data: { cashier_id: ada.userId, cashier_name: "Ada" },
    });
    expect(await owner.good("DELETE", `${station}/lease/`)).toMatchObject({ lease: null });
    await acquire(ben);
    await ben.good("POST", `${station}/intents/${intent.intent_id}/cancel/`);
    await ben.good("DELETE", `${station}/lease/`);
  });
});

describe("a lease while the registry does not answer", () => {
  it("acquired, for two minutes at most; the next renewal binds it to the cashier's session", async () => {
    const { person: ada } = await newCashier("Ada");
    const sql = openDatabase({ url: system.database.url, maxConnections: 1 });
    const relayEpoch = async () => (await sql<{ epoch: number }[]>`select epoch from relay_lease`)[0]?.epoch ?? 0;
    const killedEpoch = await relayEpoch();
    await system.processes.services.kill9();
    const { lease } = await acquire(ada);
    const heldMs = Date.parse(lease?.expires_at ?? "") - Date.parse(lease?.acquired_at ?? "");
    expect(heldMs).toBe(LIMITS.unboundLeaseMs);
    await system.processes.services.restart();
    const renewed = await ada.good<Lease>("PUT", `${station}/lease/`, HOUR);
    expect(Date.parse(renewed.lease?.expires_at ?? "") - Date.now()).toBeGreaterThan(3_500_000);
    // The relay was killed as well. Until its lease has lapsed and another relay leads, the answer would be 202.
    await expect.poll(relayEpoch, { timeout: 15_000 }).toBeGreaterThan(killedEpoch);
    await closeDatabase(sql);
    expect((await ada.call("DELETE", "session/")).status).toBe(204);
    await expect.poll(() => read(ben), { timeout: 15_000 }).toMatchObject({ lease: null });
  });
});
