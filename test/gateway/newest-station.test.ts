/** Another gateway may have acknowledged a newer state, so this one reads the newest before a final error (design §2.2). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findEndedIntent } from "../../services/bus/messages/intents.ts";
import { type Serving, serve } from "../../services/bus/operation.ts";
import { createLog } from "../../services/runtime/log.ts";
import { send } from "../support/http.ts";
import { type GatewayWorld, startGatewayWorld, type TestStation } from "./gateway-world.ts";

let world: GatewayWorld;
let station: TestStation;
let settlement: Serving;
let token: string;
let handedOver: number | undefined;
beforeAll(async () => {
  world = await startGatewayWorld();
  station = await world.openStation(1);
  token = await world.session();
  const log = createLog({ service: "test", level: "silent" });
  // This answer comes after the gateway has not found the intent in its replica. Only now is the intent committed.
  settlement = serve({ nc: world.bus.nc, log, queue: "settlement" }, findEndedIntent, async () => {
    handedOver ??= await station.handOver();
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

describe("an intent that the gateway's replica does not have", () => {
  test("committed after the gateway's first read: found; not committed: `intent_unknown`", async () => {
    const intentId = 101;
    const found = await read(intentId);
    expect(found.status, found.text).toBe(200);
    expect(handedOver).toBe(intentId);
    const unknown = await read(intentId + 1);
    expect([unknown.status, JSON.parse(unknown.text)]).toMatchObject([404, { code: "intent_unknown" }]);
  });
});
