import { verify } from "@node-rs/argon2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listDevices, moveDevice } from "../../services/bus/messages/devices.ts";
import { enrollDevice } from "../../services/bus/messages/enrollment-codes.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox-organization.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import { listStations, moveStation, renameStation, type Station } from "../../services/bus/messages/stations.ts";
import {
  CASHIER_PASSWORD,
  OWNER_PASSWORD,
  type RegistryFixture,
  refusalOf,
  startRegistry,
} from "./registry-fixture.ts";

let fixture: RegistryFixture;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

const seed = (ownerPassword = OWNER_PASSWORD, cashierPassword = CASHIER_PASSWORD) =>
  fixture.ask(seedSandbox, { ownerPassword, cashierPassword });

const withoutCodes = (seeded: Station[] | Awaited<ReturnType<typeof seed>>) =>
  JSON.parse(
    JSON.stringify(seeded, (key, value: unknown) => (key === "enrollmentCode" ? undefined : value)),
  ) as unknown;

describe("the seeded sandbox", () => {
  test("its first start: two stations, each with a pending companion and a pending display", () => {
    expect(fixture.sandbox).toMatchObject({
      owner: { email: "owner@sandbox.example" },
      cashier: { email: "cashier@sandbox.example" },
      stations: [
        {
          name: "Sandbox Counter",
          devices: [
            { kind: "smart_pos_companion", enrollmentCode: expect.stringMatching(/^\w{5}-\w{5}$/) },
            { kind: "customer_display", enrollmentCode: expect.stringMatching(/^\w{5}-\w{5}$/) },
          ],
        },
        { name: "Sandbox Demo", devices: [{ kind: "smart_pos_companion" }, { kind: "customer_display" }] },
      ],
    });
  });

  test("its stations: marked as sandbox; its companions: have a launch reference", async () => {
    const { stations } = await fixture.ask(listStations, { caller: fixture.owner });
    expect(stations.map((station) => station.sandbox)).toEqual([true, true]);
    const { devices } = await fixture.ask(listDevices, { caller: fixture.owner });
    expect(devices.map((device) => device.handoffTarget)).toEqual([
      "sandbox-pos://collect",
      "",
      "sandbox-pos://collect",
      "",
    ]);
  });

  test("a second start: the same ids, and new codes for devices that are still pending", async () => {
    const again = await seed();
    expect(withoutCodes(again)).toEqual(withoutCodes(fixture.sandbox));
    const first = fixture.sandbox.stations[0]?.devices[0];
    const second = again.stations[0]?.devices[0];
    expect(second?.enrollmentCode).not.toBe(first?.enrollmentCode);
    const stale = fixture.ask(enrollDevice, { address: "127.0.0.1", code: first?.enrollmentCode ?? "" });
    expect(await refusalOf(stale)).toEqual({ code: "enrollment_code_invalid" });

    await fixture.ask(enrollDevice, { address: "127.0.0.1", code: second?.enrollmentCode ?? "" });
    const third = await seed();
    expect(third.stations[0]?.devices.map((device) => typeof device.enrollmentCode)).toEqual(["object", "string"]);
  });

  test("several starts at the same time: seeded once", async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => seed()));
    for (const one of all) expect(withoutCodes(one)).toEqual(withoutCodes(fixture.sandbox));
    const [counts] = await fixture.sql`
      select (select count(*) from organizations) as organizations, (select count(*) from stations) as stations,
        (select count(*) from devices) as devices, (select count(*) from users) as users`;
    expect(counts).toEqual({ organizations: 1, stations: 2, devices: 4, users: 2 });
  });

  test("a renamed station: kept; a closed station or a revoked device: made again", async () => {
    const caller = fixture.owner;
    const [counter, demo] = fixture.sandbox.stations;
    await fixture.ask(renameStation, { caller, stationId: counter?.stationId ?? 0, name: "My Counter" });
    await fixture.ask(moveStation, { caller, stationId: demo?.stationId ?? 0, move: "CLOSE" });
    const display = counter?.devices[1]?.deviceId ?? 0;
    await fixture.ask(moveDevice, { caller, deviceId: display, move: "REVOKE" });
    const again = await seed();
    expect(again.stations[0]).toMatchObject({ stationId: counter?.stationId, name: "My Counter" });
    expect(again.stations[0]?.devices[1]?.deviceId).toBeGreaterThan(display);
    expect(again.stations[1]?.stationId).toBeGreaterThan(demo?.stationId ?? 0);
    expect(again.stations[1]?.name).toBe("Sandbox Demo");
  });

  test("a start with another password: it is set, and the sessions of the old one end", async () => {
    const hashOf = async (email: string) =>
      (await fixture.sql<[{ password_hash: string }]>`select password_hash from users where email = ${email}`)[0]
        .password_hash;
    const kept = await hashOf("cashier@sandbox.example");
    const address = "192.0.2.9";
    const email = "owner@sandbox.example";
    await fixture.ask(sessions.logIn, { email, password: OWNER_PASSWORD, address, permission: "organization.manage" });
    await seed("another owner of the sandbox");
    expect(await verify(await hashOf(email), "another owner of the sandbox")).toBe(true);
    expect(await hashOf("cashier@sandbox.example")).toBe(kept);
    const old = fixture.ask(sessions.logIn, {
      email,
      password: OWNER_PASSWORD,
      address,
      permission: "organization.manage",
    });
    expect(await refusalOf(old)).toEqual({ code: "login_failed" });
    const open = await fixture.sql`select 1 from sessions where user_id = ${fixture.owner.userId} and ended_at is null`;
    expect(open).toHaveLength(0);
  });
});
