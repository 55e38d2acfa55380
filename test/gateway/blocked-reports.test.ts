/** A blocked device reports while its station cannot be reached: refused as usual, and the report is in the log. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Refused, send } from "../support/http.ts";
import { type GatewayProcess, startGatewayProcess } from "./gateway-process.ts";
import { COMPANION_SCOPES, type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";

const LINE = "the station may not have stored a blocked device's report";

/** No actor host runs in this world: every station is out of reach. */
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

it("gets the usual answer within two seconds, and one log line contains the whole report", async () => {
  const station = await world.openStation(4);
  const intentId = await station.handOver();
  const token = await world.credential(station.companionId, 4, COMPANION_SCOPES);
  await world.setSwitch(`device.${station.companionId}`, true);
  const ask = () =>
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
  const refused = await ask();
  expect([refused.status, refused.body.code]).toEqual([403, "device_frozen"]);
  expect(performance.now() - startedAtMs).toBeLessThan(2_000);
  const lines = () => gateway.log().filter(({ msg }) => msg === LINE);
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
