/** A freeze while the host reads its kill switches again, because their bucket is new: no electronic payment begins. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { prepareIntent } from "../../services/bus/messages/intents.ts";
import { serve } from "../../services/bus/operation.ts";
import { SWITCHES } from "../../services/bus/streams.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { createLog } from "../../services/runtime/log.ts";
import { CASHIER, type StationWorld, startStationWorld } from "./station-world.ts";

/** A feed that lost its consumer asks for a new one after a second. */
const READ_ANEW_MS = 1_600;
const ORDER = {
  orderId: 5,
  orderDisplayNumber: 5,
  amountMinor: "1250",
  currency: "EUR",
  status: "open",
  revision: 1,
} as const;

let world: StationWorld;
beforeAll(async () => {
  world = await startStationWorld();
});
afterAll(() => world.stop());

it("a creation waits for its order while the switches are read again: unavailable", async () => {
  await world.bus.js.publish(`$KV.${SWITCHES.name}.platform`, "{}");
  await world.startHost();
  const stationId = await world.openStation();
  const log = createLog({ service: "test", level: "silent" });
  const served = serve({ nc: world.bus.nc, log, queue: "settlement" }, prepareIntent, async () => {
    await world.bus.jsm.streams.delete(`KV_${SWITCHES.name}`);
    await ensureStreams(world.bus, { replicas: 1, logs: 1 });
    await delay(READ_ANEW_MS);
    return { intentId: 77, ended: null, order: ORDER };
  });
  await world.bus.nc.flush();
  const command = { type: "intent_create", route: "attested_terminal", orderId: ORDER.orderId };
  const request = JSON.stringify({ commandId: "test:create", actor: CASHIER, command });
  const answer = await world.bus.nc.request(stationCommandSubject(stationId), request, { timeout: 15_000 });
  expect(answer.json()).toMatchObject({ failure: "unavailable" });
  served.unsubscribe();
});
