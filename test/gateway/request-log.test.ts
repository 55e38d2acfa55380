/** The gateway logs one wide line for each request, none for a successful poll, and never a secret. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listPayments, type Payment } from "../../services/bus/messages/payments.ts";
import { serve } from "../../services/bus/operation.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { DEVICES } from "../support/devices.ts";
import { type Refused, send } from "../support/http.ts";
import { type GatewayProcess, startGatewayProcess } from "./gateway-process.ts";
import { COMPANION_SCOPES, type GatewayWorld, SILENT, startGatewayWorld } from "./gateway-world.ts";

let world: GatewayWorld;
let gateway: GatewayProcess;
beforeAll(async () => {
  world = await startGatewayWorld();
  gateway = await startGatewayProcess(world.nats.url);
});
afterAll(async () => {
  await gateway.stop();
  await world.stop();
});

type Line = Record<string, unknown>;

/** The line of a request. The gateway writes it a moment after the answer. */
async function lineOf(id: string): Promise<Line | undefined> {
  const find = (): Line | undefined => gateway.log().find(({ requestId }) => requestId === id);
  await expect.poll(find, { timeout: 10_000 }).toBeDefined();
  return find();
}

/** Returns all lines so far. Lines have the order of their requests, so this sends one more request and waits for its line. */
async function linesUntil(id: string): Promise<readonly Line[]> {
  await send(gateway.baseUrl, "GET", "/api/cashier/v1/session/", { headers: { "x-request-id": id } });
  await lineOf(id);
  return gateway.log();
}

describe("the log of requests", () => {
  it("a request: one line with the caller, the operation, the outcome, the duration and the request id", async () => {
    const station = await world.openStation(1);
    const token = await world.session({ permissions: ["payments.collect"], userId: 42, organizationId: 1 });
    await expect
      .poll(async () => (await send(gateway.baseUrl, "GET", "/api/cashier/v1/session/", { token })).status)
      .toBe(200);
    const headers = { "x-request-id": "till-7" };
    await send(gateway.baseUrl, "GET", `/api/cashier/v1/stations/${station.stationId}/lease/`, { token, headers });
    expect(await lineOf("till-7")).toMatchObject({
      level: "info",
      msg: "request",
      method: "GET",
      route: "/api/cashier/v1/stations/{station_id}/lease/",
      operation: "cashier_get_lease",
      ids: ["1"],
      status: 200,
      address: "127.0.0.1",
      userId: 42,
      organizationId: 1,
      durationMs: expect.any(Number) as number,
    });
    const refused = await send<{ request_id: string }>(gateway.baseUrl, "GET", "/api/cashier/v1/session/");
    expect(await lineOf(refused.body.request_id)).toMatchObject({ status: 401, refusal: "session_missing" });
  });

  it("polls and heartbeats without an error: no line", async () => {
    const station = await world.openStation(2);
    const token = await world.credential(station.companionId, 2, COMPANION_SCOPES);
    await expect.poll(async () => (await send(gateway.baseUrl, "GET", `${DEVICES}me/`, { token })).status).toBe(200);
    const before = (await linesUntil("before")).length;
    await send(gateway.baseUrl, "GET", `${DEVICES}assignment/`, { token });
    expect((await send(gateway.baseUrl, "POST", `${DEVICES}heartbeat/`, { token })).status).toBe(200);
    await send(gateway.baseUrl, "GET", "/healthz");
    expect((await linesUntil("after")).slice(before)).toMatchObject([{ requestId: "after" }]);
  });

  it("requests with credentials, tokens, cookies, passwords and codes: none of these is in the log", async () => {
    const secrets = ["dp_00_secret-credential", "secret-token", "secret-password", "SECRE-TCODE", "secret-query"];
    const [credential, token, password, code, query] = secrets as [string, string, string, string, string];
    await send(gateway.baseUrl, "GET", `${DEVICES}me/`, { token: credential });
    await send(gateway.baseUrl, "POST", `${DEVICES}heartbeat/`, { token: credential });
    await send(gateway.baseUrl, "POST", `${DEVICES}enroll/`, { json: { code } });
    await send(gateway.baseUrl, "GET", "/api/cashier/v1/stations/", { headers: { cookie: `dp_session=${token}` } });
    await send(gateway.baseUrl, "POST", "/api/cashier/v1/session/", { json: { email: "a@b.example", password } });
    await send(gateway.baseUrl, "GET", `/nothing/?token=${query}`);
    const text = JSON.stringify(await linesUntil("last"));
    expect(text).toContain("payments_device_enroll");
    for (const secret of secrets) expect(text).not.toContain(secret);
  });
});

const PAYMENT: Payment = {
  intentId: 2,
  orderId: 3,
  orderDisplayNumber: 4,
  filialId: 5,
  filialName: "Harbour",
  stationId: 6,
  stationName: "Counter",
  sandbox: true,
  route: "cash",
  status: "succeeded",
  amountMinor: "2500",
  currency: "EUR",
  cashierId: 7,
  cashierName: "Ana",
  deviceId: null,
  deviceName: "",
  reference: "",
  transactionId: 8,
  moneyMayHaveMoved: "",
  createdAtMs: 0,
  endedAtMs: 0,
};

describe("an export whose service fails after the first page", () => {
  it("the answer breaks off, and the line has the error and its status", async () => {
    const deps = { nc: world.bus.nc, log: SILENT, queue: "audit" };
    const served = serve(deps, listPayments, async ({ beforeId }) => {
      if (beforeId !== undefined) throw new RefusedError({ code: "unavailable" });
      return { payments: [PAYMENT], hasMore: true };
    });
    const token = await world.session({ role: "owner", permissions: ["organization.manage"] });
    const path = "/api/backoffice/v1/exports/payments/";
    const get = (id: string) => send(gateway.baseUrl, "GET", path, { token, headers: { "x-request-id": id } });
    // The gateway may not have received the session yet: then it answers, and breaks nothing off.
    const isBrokenOff = (id: string) =>
      get(id).then(
        () => false,
        () => true,
      );
    await expect.poll(() => isBrokenOff("export-2")).toBe(true);
    await expect
      .poll(() => gateway.log().filter(({ requestId }) => requestId === "export-2"))
      .toContainEqual(
        expect.objectContaining({
          level: "warn",
          operation: "backoffice_export_payments",
          status: 503,
          refusal: "unavailable",
        }),
      );
    served.unsubscribe();
  });
});

/** No actor host runs in this world, so the gateway cannot reach any station. */
describe("a blocked device's report while its station cannot be reached", () => {
  it("the usual answer within two seconds, and one log line with the whole report", async () => {
    const station = await world.openStation(4);
    const intentId = await station.handOver();
    const token = await world.credential(station.companionId, 4, COMPANION_SCOPES);
    await world.setSwitch(`device.${station.companionId}`, true);
    const sendReport = () =>
      send<Refused>(gateway.baseUrl, "POST", "/api/payments/v1/devices/assignment/report/", {
        token,
        json: {
          intent_id: intentId,
          outcome: "reported_success",
          provider_reference: "RRN-4",
          client_idempotency_key: "out-of-reach",
        },
      });
    await expect.poll(async () => (await send<Refused>(gateway.baseUrl, "GET", "/readyz")).status).toBe(200);
    await expect
      .poll(
        async () =>
          (await send<Refused>(gateway.baseUrl, "GET", "/api/payments/v1/devices/assignment/", { token })).status,
      )
      .toBe(403);
    const startedAtMs = performance.now();
    const refused = await sendReport();
    expect([refused.status, refused.body.code]).toEqual([403, "device_frozen"]);
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
    const lines = () =>
      gateway.log().filter(({ msg }) => msg === "the station may not have stored a blocked device's report");
    await expect.poll(() => lines().length).toBe(1);
    expect(lines()[0]).toMatchObject({
      level: "warn",
      requestId: refused.body.request_id,
      blocked: "device_frozen",
      stationId: 4,
      deviceId: station.companionId,
      intentId,
      outcome: "reported_success",
      providerReference: "RRN-4",
    });
  });
});
