import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import { eventually } from "../support/wait-for.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

describe("partitions and their owners", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld();
  });
  afterEach(() => world.stopHosts());
  afterAll(() => world.stop());

  it("a single host: it has all partitions well within a second of its start", async () => {
    const startedAt = performance.now();
    const only = await world.startHost();
    expect(only.host.owned().size).toBe(PARTITION_COUNT);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  it("two hosts: each partition has exactly one owner, and each host has more than a quarter", async () => {
    const first = await world.startHost();
    const second = await world.startHost();
    await eventually(
      () => first.host.owned().size + second.host.owned().size === PARTITION_COUNT && second.host.owned().size > 0,
    );
    const both = [...first.host.owned()].filter((partition) => second.host.owned().has(partition));
    expect(both).toEqual([]);
    expect(first.host.owned().size).toBeGreaterThan(PARTITION_COUNT / 4);
    expect(second.host.owned().size).toBeGreaterThan(PARTITION_COUNT / 4);
    await first.stop();
    await eventually(() => second.host.owned().size === PARTITION_COUNT);
  });

  it("a host stops: it hands over in less than 500 ms, and no command is lost", async () => {
    const first = await world.startHost();
    const stationIds = await Promise.all(Array.from({ length: 20 }, () => world.openStation()));
    const second = await world.startHost();
    await eventually(
      () => first.host.owned().size + second.host.owned().size === PARTITION_COUNT && second.host.owned().size > 0,
    );
    const traffic = new AbortController();
    let longestMs = 0;
    let asked = 0;
    const renewing = stationIds.map(async (stationId) => {
      while (!traffic.signal.aborted) {
        const askedAt = performance.now();
        const { reply } = await world.ask(stationId, { type: "lease_renew" });
        longestMs = Math.max(longestMs, performance.now() - askedAt);
        asked += 1;
        expect(reply.ok).toBe(true);
      }
    });
    await pause(300);
    const stoppedAt = performance.now();
    await first.stop();
    const tookMs = performance.now() - stoppedAt;
    await eventually(() => second.host.owned().size === PARTITION_COUNT);
    await pause(300);
    traffic.abort();
    await Promise.all(renewing);
    expect(tookMs).toBeLessThan(500);
    expect(longestMs).toBeLessThan(1_000);
    expect(asked).toBeGreaterThan(100);
  });

  it("a host is killed: the other host serves its stations within 3 s", async () => {
    const killed = await world.startHostProcess();
    const stationIds = await Promise.all(Array.from({ length: 8 }, () => world.openStation()));
    const other = await world.startHost();
    await eventually(() => other.host.owned().size > PARTITION_COUNT / 4);
    const killedAt = performance.now();
    await killed.kill9();
    await Promise.all(
      stationIds.map(async (stationId) => {
        const { reply } = await world.ask(stationId, { type: "lease_renew" });
        expect(reply.ok).toBe(true);
      }),
    );
    expect(other.host.owned().size).toBe(PARTITION_COUNT);
    expect(performance.now() - killedAt).toBeLessThan(3_000);
  });

  it("a host continues after it was removed as stalled: a command takes effect once", async () => {
    const frozen = await world.startHostProcess();
    const stationId = await world.openStation();
    frozen.freeze();
    const other = await world.startHost();
    await eventually(() => other.host.owned().size === PARTITION_COUNT);
    await world.ask(stationId, { type: "lease_renew" });
    // Both hosts receive the command, the stalled one when it continues. It takes effect once, whichever host is first.
    const renewal = world.ask(stationId, { type: "lease_release" }, { commandId: "test:release" });
    frozen.thaw();
    expect((await renewal).reply.ok).toBe(true);
    const released = (await world.commits(stationId)).filter((commit) => commit.commandId === "test:release");
    expect(released).toHaveLength(1);
  });

  it("nats-server is killed: the host accepts no commands until it can renew, and then has its partitions again", async () => {
    const { host } = await world.startHost();
    const stationId = await world.openStation();
    await world.nats.kill9();
    await eventually(() => host.owned().size === 0, 3_000);
    await world.nats.restart();
    await eventually(() => host.owned().size === PARTITION_COUNT, 8_000);
    const { reply } = await world.ask(stationId, { type: "lease_renew" });
    expect(reply.ok).toBe(true);
  });
});
