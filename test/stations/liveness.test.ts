import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it, type TestContext } from "vitest";
import { LIVENESS } from "../../services/bus/streams.ts";
import { heartbeatSubject } from "../../services/bus/subjects.ts";
import { eventually } from "../support/wait-for.ts";
import { livenessChanges, livenessOf, REGISTRY, type StationWorld, startStationWorld } from "./station-world.ts";

const SILENCE_MS = 1_000;

/** Tests run at the same time, so each has a separate world. */
async function worldOf({ onTestFinished }: TestContext): Promise<StationWorld> {
  const world = await startStationWorld({ environment: { DEVICE_SILENCE_MS: String(SILENCE_MS) } });
  onTestFinished(() => world.stop());
  return world;
}

describe("liveness from the heartbeats", () => {
  const isNow = (world: StationWorld, stationId: number, deviceId: number, expected: string) => async () =>
    (await livenessOf(world, stationId, deviceId)) === expected;

  it("a silent device: offline within a second after the limit, and online with its next heartbeat", async (context) => {
    const world = await worldOf(context);
    await world.startHost();
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const beat = await world.bus.jsm.streams.getMessage(LIVENESS.name, {
      last_by_subj: heartbeatSubject(stationId, deviceId),
    });
    await eventually(isNow(world, stationId, deviceId, "offline"));
    const silentForMs = (await world.newest(stationId)).atMs - (beat?.time.getTime() ?? Number.NaN);
    expect(silentForMs).toBeGreaterThanOrEqual(SILENCE_MS - 5);
    expect(silentForMs).toBeLessThan(SILENCE_MS + 1_000);
    const beatenAtMs = Date.now();
    await world.heartbeat(stationId, deviceId);
    await eventually(isNow(world, stationId, deviceId, "online"));
    expect((await world.newest(stationId)).atMs).toBeLessThan(beatenAtMs + 1_000);
  });

  it.concurrent("regular heartbeats: nothing is committed", async (context) => {
    const world = await worldOf(context);
    await world.startHost();
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    for (let beat = 0; beat < 8; beat += 1) {
      await pause(SILENCE_MS / 4);
      await world.heartbeat(stationId, deviceId);
    }
    expect(await livenessChanges(world, stationId)).toEqual(["device_online"]);
  });

  it.concurrent("another host takes over: the device stays online", async (context) => {
    const world = await worldOf(context);
    await world.startHost();
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const beat = setInterval(() => void world.heartbeat(stationId, deviceId), SILENCE_MS / 4);
    await world.stopHosts();
    await world.startHost();
    await pause(2 * SILENCE_MS);
    clearInterval(beat);
    expect(await livenessChanges(world, stationId)).toEqual(["device_online"]);
  });

  it.concurrent("devices change while no host runs: the next host sets one offline and one online", async (context) => {
    const world = await worldOf(context);
    await world.startHost();
    const stationId = await world.openStation();
    const silent = await world.addCompanion(stationId);
    const returning = await world.addCompanion(stationId);
    await eventually(isNow(world, stationId, returning, "offline"));
    await world.heartbeat(stationId, silent);
    await eventually(isNow(world, stationId, silent, "online"));
    await world.stopHosts();
    await pause(SILENCE_MS);
    // With this interval, the device has sent a heartbeat just before the host is ready.
    const beat = setInterval(() => void world.heartbeat(stationId, returning), SILENCE_MS / 4);
    await world.startHost();
    await eventually(isNow(world, stationId, silent, "offline"));
    await eventually(isNow(world, stationId, returning, "online"));
    clearInterval(beat);
  });

  it.concurrent("an outage of NATS: the host reads the stored heartbeats before a device counts as silent", async (context) => {
    const world = await worldOf(context);
    await world.startHost();
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const beat = setInterval(() => void world.heartbeat(stationId, deviceId).catch(() => undefined), SILENCE_MS / 10);
    await pause(SILENCE_MS / 2);
    await world.nats.kill9();
    await world.nats.restart();
    await pause(3 * SILENCE_MS);
    clearInterval(beat);
    expect(await livenessOf(world, stationId, deviceId)).toBe("online");
  });

  it.concurrent("a host receives no heartbeats: it reads the stored one before a device counts as silent", async (context) => {
    const world = await worldOf(context);
    const { proxy } = await world.startHostBehindProxy();
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const receive = proxy.loseAll("station.heard.");
    const beat = setInterval(() => void world.heartbeat(stationId, deviceId), SILENCE_MS / 10);
    await pause(3 * SILENCE_MS);
    expect(await livenessChanges(world, stationId)).toEqual(["device_online"]);
    clearInterval(beat);
    await eventually(isNow(world, stationId, deviceId, "offline"));
    receive();
    await world.heartbeat(stationId, deviceId);
    await eventually(isNow(world, stationId, deviceId, "online"));
  });

  it.concurrent("the clock of the server that stores heartbeats is wrong: the time of the bus counts", async (context) => {
    const world = await worldOf(context);
    const host = await world.startHostBehindProxy();
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    // From here on the server stores each heartbeat with a time that is much later than the time of the bus.
    const beatLate = () => world.heartbeat(stationId, deviceId, world.bus.clock.nowMs() - 2 * SILENCE_MS);
    host.proxy.loseAll("station.heard.");
    const beat = setInterval(() => void beatLate(), SILENCE_MS / 10);
    await eventually(isNow(world, stationId, deviceId, "offline"));
    await host.stop();
    clearInterval(beat);
    // The next host receives none of them, and reads the last one.
    await beatLate();
    await world.startHost();
    await pause(SILENCE_MS);
    expect(await livenessChanges(world, stationId)).toEqual(["device_online", "device_offline"]);
  });

  it.concurrent("the stream LIVENESS does not answer: a device counts as silent only after its answer", async (context) => {
    const world = await worldOf(context);
    const { proxy } = await world.startHostBehindProxy();
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const answer = proxy.loseAll("stream_msg_get_response");
    await pause(3 * SILENCE_MS);
    expect(await livenessChanges(world, stationId)).toEqual(["device_online"]);
    answer();
    await eventually(isNow(world, stationId, deviceId, "offline"));
  });

  it.concurrent("a device that was reset and enrolled again: its heartbeat sets it online", async (context) => {
    const world = await worldOf(context);
    await world.startHost();
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const device = {
      deviceId,
      name: "Terminal",
      kind: "smart_pos_companion",
      capabilities: ["handoff_present", "outcome_report"],
      handoffTarget: "",
    } as const;
    await world.ask(
      stationId,
      { type: "device_put", device: { ...device, status: "pending", revision: 2 } },
      { actor: REGISTRY },
    );
    expect(await livenessOf(world, stationId, deviceId)).toBe("offline");
    await world.ask(
      stationId,
      { type: "device_put", device: { ...device, status: "active", revision: 3 } },
      { actor: REGISTRY },
    );
    await world.heartbeat(stationId, deviceId);
    await eventually(isNow(world, stationId, deviceId, "online"));
  });

  it.concurrent("a heartbeat of an unknown device or station: nothing is committed", async (context) => {
    const world = await worldOf(context);
    await world.startHost();
    const stationId = await world.openStation();
    const before = (await world.commits(stationId)).length;
    await world.bus.js.publish(heartbeatSubject(stationId, 999_999), "not even JSON");
    await world.bus.js.publish(heartbeatSubject(777_777, 999_998), "{}");
    await pause(200);
    expect(await world.commits(stationId)).toHaveLength(before);
    expect(await world.commits(777_777)).toEqual([]);
  });
});
