/** A heartbeat that arrives after the silence of its device is stored, and before the host knows that commit. */

import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { eventually } from "../support/wait-for.ts";
import { livenessChanges, livenessOf, type StationWorld, startStationWorld } from "./station-world.ts";

/** Longer than the host waits for an acknowledgement, so that the heartbeat is still new when the host knows the commit. */
const SILENCE_MS = 2 * STATION_LIMITS.appendMs + 500;

let world: StationWorld;
beforeAll(async () => {
  world = await startStationWorld({ environment: { DEVICE_SILENCE_MS: String(SILENCE_MS) } });
});
afterAll(() => world.stop());

it("a heartbeat before the host knows the commit of a silence: the device is online without another heartbeat", async () => {
  const { proxy } = await world.startHostBehindProxy();
  const stationId = await world.openStation();
  const deviceId = await world.addCompanion(stationId);
  // This answer comes after the commit that set the device online, so the next acknowledgement is of another commit.
  expect((await world.ask(stationId, { type: "lease_renew" })).reply.ok).toBe(true);
  // The acknowledgement of the silence is lost. The host knows that commit only after it has read the log back.
  await proxy.loseNext(`"stream":"STATION_LOG_0"`);
  expect(await livenessChanges(world, stationId)).toEqual(["device_online", "device_offline"]);
  await world.heartbeat(stationId, deviceId);
  await eventually(async () => (await livenessOf(world, stationId, deviceId)) === "online");
  expect(await livenessChanges(world, stationId)).toEqual(["device_online", "device_offline", "device_online"]);
  // Without another heartbeat, the device is silent again.
  await pause(SILENCE_MS);
  await eventually(async () => (await livenessOf(world, stationId, deviceId)) === "offline");
});
