/** An error that no later try corrects is decided by the newest state (design §2.2), which another gateway may have acknowledged. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { findEndedIntent } from "../../services/bus/messages/intents.ts";
import { type Serving, serve } from "../../services/bus/operation.ts";
import { createLog } from "../../services/runtime/log.ts";
import { send } from "../support/http.ts";
import { type GatewayWorld, startGatewayWorld, type TestStation } from "./gateway-world.ts";

let world: GatewayWorld;
let station: TestStation;
let settlement: Serving;
let token: string;
let handed: number | undefined;
beforeAll(async () => {
  world = await startGatewayWorld();
  station = await world.openStation(1);
  token = await world.session();
  const log = createLog({ service: "test", level: "silent" });
  // The intent is committed once the gateway has not found it in its copy of the station.
  settlement = serve({ nc: world.bus.nc, log, queue: "settlement" }, findEndedIntent, async () => {
    handed ??= await station.handOver();
    return { intent: null, orderStatus: null };
  });
  await world.bus.nc.flush();
});
afterAll(async () => {
  await settlement.drain();
  await world.stop();
});

const read = (intentId: number) =>
  send(world.baseUrl, "GET", `/api/cashier/v1/stations/1/intents/${intentId}/`, {
    headers: { authorization: `Bearer ${token}` },
  });

test("an intent committed after the first read: found; an intent that does not exist: unknown", async () => {
  const intentId = 101;
  const found = await read(intentId);
  expect(found.status, found.text).toBe(200);
  expect(handed).toBe(intentId);
  const unknown = await read(intentId + 1);
  expect([unknown.status, JSON.parse(unknown.text)]).toMatchObject([404, { code: "intent_unknown" }]);
});
