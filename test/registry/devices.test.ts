import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
import {
  changeDevice,
  getDevice,
  listDevices,
  moveDevice,
  registerDevice,
} from "../../services/bus/messages/devices.ts";
import { enrollDevice } from "../../services/bus/messages/enrollment-codes.ts";
import { createStation, moveStation, renameStation } from "../../services/bus/messages/stations.ts";
import { heartbeatSubject } from "../../services/bus/subjects.ts";
import {
  newActiveDevice,
  newCode,
  newDevice,
  newStation,
  type RegistryFixture,
  refusalOf,
  startRegistry,
} from "./registry-fixture.ts";

let fixture: RegistryFixture;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

const register = (stationId: number, more: object = {}) =>
  fixture.ask(registerDevice, {
    caller: fixture.owner,
    stationId,
    name: "Device",
    kind: "smart_pos_companion",
    ...more,
  });
const outboxOf = (stationId: number) => fixture.sql<{ kind: string; payload: { command: object; actor: object } }[]>`
  select kind, payload from outbox where key = ${`station.${stationId}`} order by outbox_id`;

describe("the registration of a device", () => {
  test("declared fields: stored; the device is pending, and its station is notified", async () => {
    const { stationId } = await newStation(fixture);
    const more = { name: " Till 3 ", capabilities: ["outcome_report"], handoffTarget: "pos://anything at all?x=1" };
    const { device, barrier } = await register(stationId, more);
    expect(device).toEqual({
      deviceId: expect.any(Number),
      stationId,
      name: "Till 3",
      kind: "smart_pos_companion",
      capabilities: ["outcome_report"],
      status: "pending",
      handoffTarget: "pos://anything at all?x=1",
      createdAtMs: expect.any(Number),
      enrolledAtMs: null,
    });
    // No relay runs in this test, so the change is undelivered. The registry answers anyway.
    expect(barrier).toEqual({ positions: {}, isUndelivered: true });
    const { deviceId, name, kind, capabilities, status, handoffTarget } = device;
    expect((await outboxOf(stationId)).at(-1)?.payload).toEqual({
      stationId,
      actor: { kind: "owner", id: fixture.owner.userId },
      command: {
        type: "device_put",
        device: { deviceId, name, kind, capabilities, status, handoffTarget, revision: 1 },
      },
    });
  });

  test("no declared capabilities: those of the device's kind; capabilities of another kind: refused", async () => {
    const { stationId } = await newStation(fixture);
    expect((await register(stationId)).device.capabilities).toEqual(["handoff_present", "outcome_report"]);
    const display = await register(stationId, { kind: "customer_display" });
    expect(display.device.capabilities).toEqual(["display_total", "qr_dynamic_present"]);
    const foreign = await refusalOf(register(stationId, { capabilities: ["qr_dynamic_present"] }));
    expect(foreign).toMatchObject({ code: "invalid_request", errors: [{ pointer: "/capabilities" }] });
  });

  test("a launch reference: refused for a customer display, which has no program to launch", async () => {
    const { stationId } = await newStation(fixture);
    const refusal = await refusalOf(register(stationId, { kind: "customer_display", handoffTarget: "pos://x" }));
    expect(refusal).toMatchObject({ code: "invalid_request", errors: [{ pointer: "/handoff_target" }] });
    await register(stationId, { kind: "customer_display", handoffTarget: "" });
  });

  test("a full station: no further device, also when many are registered at once", async () => {
    const { stationId } = await newStation(fixture);
    const tried = await Promise.allSettled(Array.from({ length: STATE_LIMITS.devices + 4 }, () => register(stationId)));
    expect(tried.filter((one) => one.status === "fulfilled")).toHaveLength(STATE_LIMITS.devices);
    expect((await refusalOf(register(stationId))).code).toBe("device_limit_reached");
    const { devices } = await fixture.ask(listDevices, { caller: fixture.owner, stationId });
    const deviceId = devices[0]?.deviceId ?? 0;
    await fixture.ask(moveDevice, { caller: fixture.owner, deviceId, move: "REVOKE" });
    await register(stationId);
  });
});

describe("the change of a device", () => {
  test("one field: the others stay, the revision increases, and the station is notified", async () => {
    const { stationId } = await newStation(fixture);
    const { device } = await register(stationId, { handoffTarget: "pos://a" });
    const { deviceId } = device;
    const changed = await fixture.ask(changeDevice, {
      caller: fixture.owner,
      deviceId,
      handoffTarget: "pos://b",
    });
    expect(changed.device).toEqual({ ...device, handoffTarget: "pos://b" });
    expect((await outboxOf(stationId)).at(-1)?.payload.command).toMatchObject({
      device: { deviceId, handoffTarget: "pos://b", revision: 2 },
    });
    const foreign = { caller: fixture.owner, deviceId, capabilities: ["display_total" as const] };
    expect((await refusalOf(fixture.ask(changeDevice, foreign))).code).toBe("invalid_request");
  });

  test("a revoked device: refused", async () => {
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newDevice(fixture, stationId);
    await fixture.ask(moveDevice, { caller: fixture.owner, deviceId, move: "REVOKE" });
    const change = fixture.ask(changeDevice, { caller: fixture.owner, deviceId, name: "New" });
    expect((await refusalOf(change)).code).toBe("conflict");
  });
});

describe("the detail of a device", () => {
  test("the summary of its last heartbeat, or null without one", async () => {
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newActiveDevice(fixture, stationId);
    const detail = () => fixture.ask(getDevice, { caller: fixture.owner, deviceId });
    expect((await detail()).lastHeartbeat).toBeNull();
    const subject = heartbeatSubject(stationId, deviceId);
    await fixture.bus.js.publish(subject, JSON.stringify({ atMs: 1, summary: { battery: 50 } }));
    await fixture.bus.js.publish(subject, JSON.stringify({ atMs: 2, summary: { battery: 49, nested: { a: [1] } } }));
    expect((await detail()).lastHeartbeat).toEqual({ atMs: 2, summary: { battery: 49, nested: { a: [1] } } });
  });
});

describe("a station's currency and revision", () => {
  test("a currency that does not exist: refused", async () => {
    const { filialId } = await newStation(fixture);
    const request = { caller: fixture.owner, filialId, name: "Counter", currency: "XXX" };
    expect(await refusalOf(fixture.ask(createStation, request))).toMatchObject({
      code: "invalid_request",
      errors: [{ pointer: "/currency" }],
    });
  });

  test("each change: the revision increases, and the actor is notified", async () => {
    const { stationId } = await newStation(fixture);
    const caller = fixture.owner;
    await fixture.ask(renameStation, { caller, stationId, name: "Bar" });
    await fixture.ask(moveStation, { caller, stationId, move: "SUSPEND" });
    const sent = (await outboxOf(stationId)).map((row) => row.payload.command);
    expect(sent).toMatchObject([
      { type: "station_put", station: { name: "Counter", status: "active", revision: 1 } },
      { type: "station_put", station: { name: "Bar", status: "active", revision: 2 } },
      { type: "station_put", station: { name: "Bar", status: "suspended", revision: 3 } },
    ]);
  });
});

describe("a change, its audit log and its outbox row", () => {
  test("one transaction: when the outbox row fails, nothing is changed", async () => {
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newDevice(fixture, stationId);
    const code = await newCode(fixture, deviceId);
    const caller = fixture.owner;
    const everything = async () =>
      JSON.stringify(
        await fixture.sql`
      select
        (select json_agg(s order by station_id) from stations s) as stations,
        (select json_agg(d order by device_id) from devices d) as devices,
        (select json_agg(c order by code_id) from enrollment_codes c) as codes,
        (select json_agg(k) from device_credentials k) as credentials,
        (select count(*) from registry_events) as events, (select count(*) from outbox) as outbox`,
      );
    const before = await everything();
    await fixture.sql`alter table outbox add constraint takes_nothing check (false) not valid`;
    const tried = [
      () => register(stationId),
      () => fixture.ask(enrollDevice, { address: "127.0.0.1", code }),
      () => fixture.ask(changeDevice, { caller, deviceId, name: "New" }),
      () => fixture.ask(moveDevice, { caller, deviceId, move: "REVOKE" }),
      () => fixture.ask(renameStation, { caller, stationId, name: "New" }),
      () => fixture.ask(moveStation, { caller, stationId, move: "CLOSE" }),
      () => newStation(fixture),
    ];
    for (const attempt of tried) expect((await refusalOf(attempt())).code).toBe("unavailable");
    await fixture.sql`alter table outbox drop constraint takes_nothing`;
    expect(await everything()).toBe(before);
    expect((await fixture.ask(enrollDevice, { address: "127.0.0.1", code })).device.deviceId).toBe(deviceId);
  });

  test("the audit log: names the person, the action and the object", async () => {
    const caller = fixture.owner;
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newActiveDevice(fixture, stationId);
    await fixture.ask(moveDevice, { caller, deviceId, move: "SUSPEND" });
    await fixture.ask(moveStation, { caller, stationId, move: "CLOSE" });
    const auditLog = await fixture.sql`
      select action, actor_kind, actor_id, actor_name, data from registry_events
      where (subject_kind = 'station' and subject_id = ${stationId})
        or (subject_kind = 'device' and subject_id = ${deviceId})
        or (subject_kind = 'enrollment_code' and (data ->> 'device_id')::bigint = ${deviceId})
      order by event_id`;
    const owner = { actor_kind: "owner", actor_id: caller.userId, actor_name: "Sandbox Owner" };
    expect(auditLog).toMatchObject([
      { action: "station_created", ...owner, data: { name: "Counter", currency: "EUR" } },
      { action: "device_registered", ...owner, data: { kind: "smart_pos_companion", station_id: stationId } },
      { action: "enrollment_code_issued", ...owner, data: { device_id: deviceId } },
      { action: "device_enrolled", actor_kind: "device", actor_id: deviceId, actor_name: "Companion" },
      { action: "device_suspended", ...owner, data: { from: "active", to: "suspended" } },
      { action: "station_closed", ...owner, data: { from: "active", to: "closed" } },
    ]);
  });
});
