/** What a host does with kill switches that are not the newest. */
import { setTimeout as delay } from "node:timers/promises";
import { headers } from "nats";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { prepareIntent } from "../../services/bus/messages/intents.ts";
import { serve } from "../../services/bus/operation.ts";
import { SWITCHES } from "../../services/bus/streams.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { createLog } from "../../services/runtime/log.ts";
import { noteBucketsComplete } from "../support/buckets-complete.ts";
import { eventually } from "../support/wait-for.ts";
import { CASHIER, type StationWorld, startStationWorld } from "./station-world.ts";

/** Enough time for a feed that has lost its consumer: it asks for a new one after a second. */
const READ_AGAIN_MS = 1_600;
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
afterEach(() => world.stopHosts());
afterAll(() => world.stop());

it("the host reads the switches again while a creation waits for its order: unavailable", async () => {
  await world.bus.js.publish(`$KV.${SWITCHES.name}.platform`, "{}");
  await world.startHost();
  const stationId = await world.openStation();
  const log = createLog({ service: "test", level: "silent" });
  const served = serve({ nc: world.bus.nc, log, queue: "settlement" }, prepareIntent, async () => {
    await world.bus.jsm.streams.delete(`KV_${SWITCHES.name}`);
    await ensureStreams(world.bus, { replicas: 1, logs: 1 });
    await delay(READ_AGAIN_MS);
    return { intentId: 77, ended: null, order: ORDER };
  });
  await world.bus.nc.flush();
  const command = { type: "intent_create", route: "attested_terminal", orderId: ORDER.orderId };
  const request = JSON.stringify({ commandId: "test:create", actor: CASHIER, command });
  const answer = await world.bus.nc.request(stationCommandSubject(stationId), request, { timeout: 15_000 });
  expect(answer.json()).toMatchObject({ failure: "unavailable" });
  served.unsubscribe();
});

it("a freeze has ended and the host has not received it: unavailable, and no final refusal", async () => {
  await noteBucketsComplete(world.bus);
  const { proxy } = await world.startHostBehindProxy();
  const stationId = await world.openStation();
  const log = createLog({ service: "test", level: "silent" });
  const served = serve({ nc: world.bus.nc, log, queue: "settlement" }, prepareIntent, () =>
    Promise.resolve({ intentId: 78, ended: null, order: ORDER }),
  );
  await world.bus.nc.flush();
  let commands = 0;
  const create = async (): Promise<object> => {
    commands += 1;
    const command = { type: "intent_create", route: "attested_terminal", orderId: ORDER.orderId };
    const request = JSON.stringify({ commandId: `test:create:${commands}`, actor: CASHIER, command });
    const answer = await world.bus.nc.request(stationCommandSubject(stationId), request, { timeout: 15_000 });
    return answer.json();
  };
  const key = `$KV.${SWITCHES.name}.platform`;
  await world.bus.js.publish(key, "{}");
  await eventually(async () => "reply" in (await create()));
  expect(await create()).toMatchObject({ reply: { ok: false, code: "route_not_offered" } });

  const receive = proxy.loseAll(key);
  const off = headers();
  off.set("KV-Operation", "DEL");
  await world.bus.js.publish(key, "", { headers: off });
  expect(await create()).toMatchObject({ failure: "unavailable" });
  receive();
  await eventually(async () => "reply" in (await create()));
  expect(await create()).toMatchObject({ reply: { ok: true } });
  served.unsubscribe();
});
