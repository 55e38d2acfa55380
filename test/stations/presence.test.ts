/** A heartbeat that arrives after its device's silence was committed, but before the host knows of that commit. */

import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { eventually } from "../support/wait-for.ts";
import { livenessChanges, livenessOf, type StationWorld, startStationWorld } from "./station-world.ts";

/** Longer than the host waits for a lost acknowledgement, so that the heartbeat is still fresh when it knows the commit. */
const SILENCE_MS = 2 * STATION_LIMITS.appendMs + 500;

let world: StationWorld;
beforeAll(async () => {
  world = await startStationWorld({ environment: { DEVICE_SILENCE_MS: String(SILENCE_MS) } });
});
afterAll(() => world.stop());

it("a heartbeat before the commit of a silence is known: the device is online again without another heartbeat", async () => {
  const { proxy } = await world.startHostBehindProxy();
  const stationId = await world.openStation();
  const deviceId = await world.addCompanion(stationId);
  // Answered after the commit that set the device online, so that the next acknowledgement is not of that commit.
  expect((await world.ask(stationId, { type: "lease_renew" })).reply.ok).toBe(true);
  // The next acknowledgement is of the silence. It is lost, so the host knows the commit only after it has read the log back.
  await proxy.loseNext(`"stream":"STATION_LOG_0"`);
  expect(await livenessChanges(world, stationId)).toEqual(["device_online", "device_offline"]);
  await world.heartbeat(stationId, deviceId);
  await eventually(async () => (await livenessOf(world, stationId, deviceId)) === "online");
  expect(await livenessChanges(world, stationId)).toEqual(["device_online", "device_offline", "device_online"]);
  // The host watches it like any other device: without a further heartbeat it is silent again.
  await pause(SILENCE_MS);
  await eventually(async () => (await livenessOf(world, stationId, deviceId)) === "offline");
});
