/**
 * What the owner does with a device (register, code, suspend, resume, reset, revoke), and what the device then receives.
 * `presence-and-lease.test.ts` tests a device that becomes silent.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import type { deviceDetailSchema, deviceSchema, devicesSchema } from "../../../gateway/api/backoffice/devices.ts";
import type {
  enrollmentCodeSchema,
  enrollmentCodesSchema,
  issuedCodeSchema,
} from "../../../gateway/api/backoffice/enrollment-codes.ts";
import type { filialSchema } from "../../../gateway/api/backoffice/filials.ts";
import type { stationSchema } from "../../../gateway/api/backoffice/stations.ts";
import type { usersSchema } from "../../../gateway/api/backoffice/users.ts";
import type { routesSchema } from "../../../gateway/api/cashier/routes.ts";
import { enrollDevice, type TestDevice } from "../../support/devices.ts";
import { HANGS } from "../../support/hangs.ts";
import { send } from "../../support/http.ts";
import { logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Device = z.infer<typeof deviceSchema>;
type Issued = z.infer<typeof issuedCodeSchema>;
type Station = z.infer<typeof stationSchema>;

/** A revoked or blocked device is refused everywhere within this time (I8). */
const REFUSED_WITHIN_MS = 1_500;

let system: TestSystem;
let owner: Person;
let cashier: Person;
let station: Station;

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const filial = await owner.good<z.infer<typeof filialSchema>>("POST", "filials/", { body: { name: "Harbour" } });
  const body = { filial_id: filial.filial_id, name: "Counter 9", currency: "JPY" };
  station = await owner.good("POST", "stations/", { body });
});
afterAll(() => system.stop());

const register = (changes = {}): Promise<Device> =>
  owner.good("POST", "devices/", {
    body: { station_id: station.station_id, name: "Tablet", kind: "smart_pos_companion", ...changes },
  });
const issue = (device: Device, body?: object): Promise<Issued> =>
  owner.good("POST", `devices/${device.device_id}/enrollment-codes/`, body === undefined ? {} : { body });
const move = (device: Device, step: string): Promise<Device> =>
  owner.good("POST", `devices/${device.device_id}/${step}/`);
/** Claims from an address that no other test uses, because one address may claim ten codes a minute. */
const claim = (code: string) =>
  send(system.baseUrl, "POST", "/api/payments/v1/devices/enroll/", {
    json: { code },
    headers: { "x-forwarded-for": "10.9.8.7" },
  });
const companionRoute = async () => {
  const { routes } = await cashier.good<z.infer<typeof routesSchema>>("GET", `stations/${station.station_id}/routes/`);
  return routes.find(({ route }) => route === "smart_pos");
};

describe("stations", () => {
  it("added, listed in a stable order, renamed and read", async () => {
    expect(station).toMatchObject({ status: "active", currency: "JPY" });
    const second = await owner.good<Station>("POST", "stations/", {
      body: { filial_id: station.filial_id, name: "Counter 10", currency: "EUR" },
    });
    const path = `stations/?filial_id=${station.filial_id}`;
    const { stations } = await owner.good<{ stations: Station[] }>("GET", path);
    expect(stations.map(({ station_id }) => station_id)).toEqual([station.station_id, second.station_id]);
    const renamed = await owner.good<Station>("PATCH", `stations/${second.station_id}/`, { body: { name: "Bar" } });
    expect(await owner.good("GET", `stations/${second.station_id}/`)).toEqual(renamed);
    expect(renamed.name).toBe("Bar");
  });

  it("an unknown currency, a blank name or an unknown filial: refused", async () => {
    const body = { filial_id: station.filial_id, name: "Counter", currency: "EUR" };
    for (const changes of [{ currency: "XXY" }, { currency: "eur" }, { name: "  " }, { colour: "red" }])
      expect(
        (await owner.refused("invalid_request", "POST", "stations/", { body: { ...body, ...changes } })).status,
      ).toBe(400);
    await owner.refused("not_found", "POST", "stations/", { body: { ...body, filial_id: 999_999 } });
  });
});

describe("a device before it enrolls", () => {
  it("registered: pending, with the capabilities of its kind", async () => {
    const device = await register({ handoff_target: "pay://collect" });
    expect(device).toMatchObject({
      status: "pending",
      capabilities: ["handoff_present", "outcome_report"],
      handoff_target: "pay://collect",
      enrolled_at: null,
      blocked_reason: "",
      liveness: { online: false, last_seen_at: null, since: null },
    });
    const detail = await owner.good<z.infer<typeof deviceDetailSchema>>("GET", `devices/${device.device_id}/`);
    expect(detail).toEqual({ ...device, last_heartbeat: null });
    const { devices } = await owner.good<z.infer<typeof devicesSchema>>(
      "GET",
      `devices/?station_id=${station.station_id}`,
    );
    expect(devices).toContainEqual(device);
    const changed = await owner.good<Device>("PATCH", `devices/${device.device_id}/`, { body: { name: "Till" } });
    expect(changed).toEqual({ ...device, name: "Till" });
  });

  it("its code: shown once, listed without the code itself, and revoked", async () => {
    const device = await register();
    const { code, enrollment_code } = await issue(device);
    expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{5}-[0-9A-HJKMNP-TV-Z]{5}$/);
    const validMs = Date.parse(enrollment_code.expires_at) - Date.parse(enrollment_code.created_at);
    expect(validMs).toBeGreaterThan(14 * 60_000);
    expect(validMs).toBeLessThanOrEqual(15 * 60_000);
    const list = await owner.call<z.infer<typeof enrollmentCodesSchema>>(
      "GET",
      `devices/${device.device_id}/enrollment-codes/`,
    );
    expect(list.body.enrollment_codes).toEqual([enrollment_code]);
    expect(JSON.stringify(list.body)).not.toContain(code.slice(0, 5));
    const path = `enrollment-codes/${enrollment_code.code_id}/revoke/`;
    const revoked = await owner.good<z.infer<typeof enrollmentCodeSchema>>("POST", path);
    expect(revoked).toEqual({ ...enrollment_code, status: "revoked" });
    expect(await claim(code)).toMatchObject({ status: 404, body: { code: "enrollment_code_invalid" } });
    await owner.refused("invalid_request", "POST", `devices/${device.device_id}/enrollment-codes/`, {
      body: { lifetime_seconds: 9 },
    });
  });

  it("a second code: voids the first one, so that only one is open", async () => {
    const device = await register();
    const older = await issue(device);
    const newer = await issue(device, { lifetime_seconds: 60 });
    const path = `devices/${device.device_id}/enrollment-codes/`;
    const { enrollment_codes } = await owner.good<z.infer<typeof enrollmentCodesSchema>>("GET", path);
    expect(enrollment_codes.map(({ code_id, status }) => [code_id, status])).toEqual([
      [newer.enrollment_code.code_id, "open"],
      [older.enrollment_code.code_id, "revoked"],
    ]);
    expect(await claim(older.code)).toMatchObject({ status: 404 });
    expect(await claim(newer.code)).toMatchObject({ status: 201 });
    await owner.refused("conflict", "POST", `enrollment-codes/${newer.enrollment_code.code_id}/revoke/`);
    await owner.refused("conflict", "POST", path);
  });
});

describe("an enrolled companion", () => {
  let device: Device;
  let companion: TestDevice;

  const refusedEverywhere = async (status: number, code: string): Promise<void> => {
    await vi.waitFor(
      async () => expect(await companion.call("GET", "assignment/")).toMatchObject({ status, body: { code } }),
      { timeout: REFUSED_WITHIN_MS, interval: 250 },
    );
  };

  it("a heartbeat: the device is active, offers its route, and its owner sees the heartbeat", async () => {
    device = await register({ name: "Companion" });
    companion = await enrollDevice(system.baseUrl, (await issue(device)).code);
    expect(await companionRoute()).toMatchObject({ offered: false, reason: "device_offline" });
    await companion.good("POST", "heartbeat/", { body: { summary: { battery: 0.8, version: "1.2.3" } } });
    await vi.waitFor(async () => expect(await companionRoute()).toMatchObject({ offered: true }), HANGS);
    const detail = await owner.good<z.infer<typeof deviceDetailSchema>>("GET", `devices/${device.device_id}/`);
    expect(detail).toMatchObject({
      status: "active",
      liveness: { online: true },
      last_heartbeat: { summary: { battery: 0.8, version: "1.2.3" } },
    });
    expect(detail.enrolled_at).not.toBeNull();
  });

  it("the device suspended: refused with the reason; resumed: accepted again", async () => {
    expect(await move(device, "suspend")).toMatchObject({ status: "suspended", blocked_reason: "device_suspended" });
    await refusedEverywhere(403, "device_suspended");
    expect(await companion.good("GET", "me/")).toMatchObject({
      status: "suspended",
      blocked_reason: "device_suspended",
    });
    expect(await companionRoute()).toMatchObject({ offered: false });
    expect(await move(device, "suspend")).toMatchObject({ status: "suspended" });
    expect(await move(device, "resume")).toMatchObject({ status: "active", blocked_reason: "" });
    expect(await companion.call("GET", "assignment/")).toMatchObject({ status: 200 });
  });

  it("its station suspended: refused with the reason; resumed: accepted again", async () => {
    const path = `stations/${station.station_id}`;
    expect(await owner.good("POST", `${path}/suspend/`)).toMatchObject({ status: "suspended" });
    await refusedEverywhere(403, "station_suspended");
    const { routes } = await cashier.good<z.infer<typeof routesSchema>>("GET", `${path}/routes/`);
    for (const offer of routes) expect(offer).toMatchObject({ offered: false, reason: "station_suspended" });
    // An order needs no lease, so this refusal comes from the station's standing.
    const body = { lines: [] };
    expect((await cashier.refused("station_suspended", "POST", `${path}/orders/`, { body })).status).toBe(403);
    expect(await owner.good("POST", `${path}/resume/`)).toMatchObject({ status: "active" });
    expect(await owner.good("POST", `${path}/resume/`)).toMatchObject({ status: "active" });
  });

  it("the device reset: it loses its credential, keeps its identity, and enrolls again", async () => {
    expect(await move(device, "reset")).toMatchObject({ status: "pending", device_id: device.device_id });
    await refusedEverywhere(401, "credential_invalid");
    const again = await enrollDevice(system.baseUrl, (await issue(device)).code);
    expect(again.deviceId).toBe(device.device_id);
    expect(again.credential).not.toBe(companion.credential);
    expect((await companion.call("GET", "me/")).status).toBe(401);
    companion = again;
    expect((await companion.call("GET", "me/")).status).toBe(200);
  });

  it("the device revoked: refused, and no further step is possible", async () => {
    expect(await move(device, "revoke")).toMatchObject({ status: "revoked", liveness: null });
    await refusedEverywhere(401, "credential_invalid");
    for (const step of ["suspend", "resume", "reset"])
      expect((await owner.refused("conflict", "POST", `devices/${device.device_id}/${step}/`)).status).toBe(409);
    await owner.refused("conflict", "POST", `devices/${device.device_id}/enrollment-codes/`);
    await owner.refused("conflict", "PATCH", `devices/${device.device_id}/`, { body: { name: "Ghost" } });
    expect(await companionRoute()).toMatchObject({ offered: false });
  });
});

describe("a closed station", () => {
  it("no device, no lease and no order is accepted, and it cannot be opened again", async () => {
    const body = { filial_id: station.filial_id, name: "Pop-up", currency: "EUR" };
    const popUp = await owner.good<Station>("POST", "stations/", { body });
    const path = `stations/${popUp.station_id}`;
    expect(await owner.good("POST", `${path}/close/`)).toMatchObject({ status: "closed" });
    for (const step of ["suspend", "resume"]) await owner.refused("conflict", "POST", `${path}/${step}/`);
    await owner.refused("conflict", "POST", "devices/", {
      body: { station_id: popUp.station_id, name: "Late", kind: "customer_display" },
    });
    expect((await cashier.refused("station_closed", "POST", `${path}/lease/`)).status).toBe(403);
    const order = { body: { lines: [] } };
    expect((await cashier.refused("station_closed", "POST", `${path}/orders/`, order)).status).toBe(403);
  });
});

describe("people of an organization", () => {
  it("added with a role and listed; a used address and invalid fields are refused", async () => {
    const details = { email: "Rita@Sandbox.example", password: "a long enough password" };
    const body = { ...details, name: "Rita", role: "reconciliation_operator" };
    const added = await owner.good<{ user_id: number }>("POST", "users/", { body });
    expect(added).toMatchObject({ role: "reconciliation_operator", permissions: ["reconciliation.manage"] });
    expect(added).not.toHaveProperty("password");
    const { users } = await owner.good<z.infer<typeof usersSchema>>("GET", "users/");
    expect(users).toContainEqual(added);
    const taken = await owner.refused("already_exists", "POST", "users/", { body });
    expect(taken.status).toBe(409);
    expect(taken.body.detail).toBe("Another person has this e-mail address; use another address.");
    for (const changes of [{ password: "short" }, { email: "no address" }, { role: "king" }])
      await owner.refused("invalid_request", "POST", "users/", { body: { ...body, ...changes } });
  });
});
