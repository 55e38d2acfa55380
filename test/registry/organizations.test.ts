/** Each organization sees only its objects, and each role may do only its operations. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../services/bus/messages/caller.ts";
import {
  changeDevice,
  getDevice,
  listDevices,
  moveDevice,
  registerDevice,
} from "../../services/bus/messages/devices.ts";
import {
  issueEnrollmentCode,
  listEnrollmentCodes,
  revokeEnrollmentCode,
} from "../../services/bus/messages/enrollment-codes.ts";
import { createFilial, listFilials } from "../../services/bus/messages/filials.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import {
  createStation,
  getStation,
  listStations,
  moveStation,
  renameStation,
} from "../../services/bus/messages/stations.ts";
import * as users from "../../services/bus/messages/users.ts";
import { REGISTRY_LIMITS } from "../../services/registry/limits.ts";
import {
  addOrganization,
  newCode,
  newDevice,
  newStation,
  type RegistryFixture,
  refusalOf,
  startRegistry,
} from "./registry-fixture.ts";

let fixture: RegistryFixture;
let stranger: Caller;
let ids: { filialId: number; stationId: number; deviceId: number; codeId: number };
beforeAll(async () => {
  fixture = await startRegistry();
  stranger = await addOrganization(fixture.sql, "Other Diner");
  const { stationId, filialId } = await newStation(fixture);
  const { deviceId } = await newDevice(fixture, stationId);
  await newCode(fixture, deviceId);
  const caller = fixture.owner;
  const { enrollmentCodes } = await fixture.ask(listEnrollmentCodes, { caller, deviceId });
  ids = { filialId, stationId, deviceId, codeId: enrollmentCodes[0]?.codeId ?? 0 };
});
afterAll(() => fixture.stop());

/** Every operation with the id of an object of an organization. */
const NAMING: Record<string, (caller: Caller) => Promise<unknown>> = {
  getStation: (caller) => fixture.ask(getStation, { caller, stationId: ids.stationId }),
  createStation: (caller) =>
    fixture.ask(createStation, { caller, filialId: ids.filialId, name: "Counter", currency: "EUR" }),
  renameStation: (caller) => fixture.ask(renameStation, { caller, stationId: ids.stationId, name: "Mine" }),
  moveStation: (caller) => fixture.ask(moveStation, { caller, stationId: ids.stationId, move: "SUSPEND" }),
  listDevices: (caller) => fixture.ask(listDevices, { caller, stationId: ids.stationId }),
  getDevice: (caller) => fixture.ask(getDevice, { caller, deviceId: ids.deviceId }),
  registerDevice: (caller) =>
    fixture.ask(registerDevice, { caller, stationId: ids.stationId, name: "Mine", kind: "customer_display" }),
  changeDevice: (caller) => fixture.ask(changeDevice, { caller, deviceId: ids.deviceId, name: "Mine" }),
  moveDevice: (caller) => fixture.ask(moveDevice, { caller, deviceId: ids.deviceId, move: "REVOKE" }),
  issueEnrollmentCode: (caller) => fixture.ask(issueEnrollmentCode, { caller, deviceId: ids.deviceId }),
  listEnrollmentCodes: (caller) => fixture.ask(listEnrollmentCodes, { caller, deviceId: ids.deviceId }),
  revokeEnrollmentCode: (caller) => fixture.ask(revokeEnrollmentCode, { caller, codeId: ids.codeId }),
};

/** Every operation without the id of an object. */
const LISTING: Record<string, (caller: Caller) => Promise<unknown>> = {
  listFilials: (caller) => fixture.ask(listFilials, { caller }),
  createFilial: (caller) => fixture.ask(createFilial, { caller, name: "North" }),
  listStations: (caller) => fixture.ask(listStations, { caller }),
  listAllDevices: (caller) => fixture.ask(listDevices, { caller }),
  listUsers: (caller) => fixture.ask(users.listUsers, { caller }),
  createUser: (caller) =>
    fixture.ask(users.createUser, {
      caller,
      email: `new-${caller.userId}@example.com`,
      name: "New",
      role: "cashier",
      password: "long enough to be taken",
    }),
};

/** All rows that a user of another organization could have changed. */
const state = async () =>
  JSON.stringify(
    await fixture.sql`
  select s.*, d.*, c.* from stations s join devices d using (station_id) join enrollment_codes c using (device_id)
  where station_id = ${ids.stationId}`,
  );

describe("another organization's owner", () => {
  test.each(Object.keys(NAMING))("%s: the same answer as for an unknown id, and nothing changes", async (name) => {
    const before = await state();
    const refusal = () => refusalOf((NAMING[name] as (caller: Caller) => Promise<unknown>)(stranger));
    const ofForeign = await refusal();
    expect(await state()).toBe(before);
    const existing = ids;
    const absent = 1_000_000_000;
    ids = { filialId: absent, stationId: absent, deviceId: absent, codeId: absent };
    const ofAbsent = await refusal();
    ids = existing;
    expect(ofForeign).toEqual(ofAbsent);
    expect(ofForeign).toMatchObject({ code: "not_found" });
  });

  test("lists: have no object of the first organization", async () => {
    const station = await newStation(fixture, stranger);
    expect(await fixture.ask(listStations, { caller: stranger })).toMatchObject({
      stations: [{ stationId: station.stationId, sandbox: false }],
    });
    const byFilial = await fixture.ask(listStations, { caller: stranger, filialId: ids.filialId });
    expect(byFilial).toEqual({ stations: [], hasMore: false });
    const closed = await fixture.ask(listStations, { caller: stranger, status: "closed" });
    expect(closed).toEqual({ stations: [], hasMore: false });
    expect(await fixture.ask(listDevices, { caller: stranger })).toEqual({ devices: [], hasMore: false });
    const { users: seen } = await fixture.ask(users.listUsers, { caller: stranger });
    expect(seen.map((user) => user.userId)).toEqual([stranger.userId]);
  });

  test("a used e-mail address of the first organization: refused without any detail", async () => {
    const request = {
      caller: stranger,
      email: "Owner@Sandbox.example",
      name: "Imposter",
      role: "owner" as const,
      password: "long enough to be taken",
    };
    expect(await refusalOf(fixture.ask(users.createUser, request))).toEqual({ code: "already_exists" });
  });
});

describe("the operations that a cashier may use", () => {
  const MAY = ["getStation", "listStations"];
  const all = { ...NAMING, ...LISTING };

  test.each(Object.keys(all))("%s: allowed when it reads stations, otherwise refused", async (name) => {
    const asked = (all[name] as (caller: Caller) => Promise<unknown>)(fixture.cashier);
    if (MAY.includes(name)) await expect(asked).resolves.toBeDefined();
    else expect(await refusalOf(asked)).toEqual({ code: "permission_denied" });
  });
});

describe("a user whom an owner creates", () => {
  test("logs in with the permission of the role", async () => {
    const password = "a password of enough length";
    const { user } = await fixture.ask(users.createUser, {
      caller: fixture.owner,
      email: "Second.Cashier@Example.com",
      name: "Second",
      role: "cashier",
      password,
    });
    expect(user).toMatchObject({ email: "second.cashier@example.com", permissions: ["payments.collect"] });
    const reply = await fixture.ask(sessions.logIn, {
      email: user.email,
      password,
      address: "192.0.2.7",
      permission: "payments.collect",
    });
    expect(reply.user).toEqual(user);
  });

  test("beside as many suspended users as the limit: created; beside as many active ones: refused", async () => {
    const caller = await addOrganization(fixture.sql, "Large Chain");
    await fixture.sql`
      insert into users (organization_id, email, name, role, status, password_hash)
      select ${caller.organizationId}, 'left-' || n || '@chain.example', 'Left', 'cashier', 'suspended', ''
      from generate_series(1, ${REGISTRY_LIMITS.users}::int) n`;
    const create = (email: string) =>
      fixture.ask(users.createUser, {
        caller,
        email,
        name: "New",
        role: "cashier",
        password: "a long enough password",
      });
    await create("one@chain.example");
    await fixture.sql`update users set status = 'active' where organization_id = ${caller.organizationId}`;
    expect(await refusalOf(create("two@chain.example"))).toMatchObject({ code: "conflict" });
  });
});
