import { Kvm } from "@nats-io/kv";
import { beforeAll, describe, expect, it } from "vitest";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import { COMPLETE_KEYS } from "../../services/bus/bucket-completeness.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { SWITCHES } from "../../services/bus/streams.ts";
import { followSwitches } from "../../services/bus/switches-replica.ts";
import { noteComplete } from "../../services/relay/buckets.ts";
import { noteBucketsComplete } from "../support/buckets-complete.ts";
import { QUIET } from "../support/quiet-log.ts";
import type { TestServer } from "../support/servers.ts";
import { startPreparedBus } from "../support/start-bus.ts";
import { eventually } from "../support/wait-for.ts";

describe("the replica of the kill switches", () => {
  let nats: TestServer;
  let bus: Bus;
  beforeAll(async () => {
    const started = await startPreparedBus();
    ({ nats, bus } = started);
    return started.stop;
  });

  it("at its start, after each change and after an outage: it has the switches that are on", async () => {
    const bucket = await new Kvm(bus.js).open("SWITCHES");
    await bucket.put("organization.3", "");
    const replica = await followSwitches(bus, QUIET);
    expect(replica.current()).toEqual({ ...NO_KILL_SWITCHES, organizations: new Set([3]) });

    const changes: unknown[] = [];
    replica.onChange((switches) => changes.push(switches));
    await bucket.put("platform", "");
    await bucket.put("station.4", "");
    await bucket.put("provider.6", "");
    const revision = await bucket.put("device.5", "");
    await eventually(() => replica.revision() === revision);
    expect(replica.current()).toEqual({
      platform: true,
      organizations: new Set([3]),
      stations: new Set([4]),
      devices: new Set([5]),
      providers: new Set([6]),
    });
    await bucket.delete("provider.6");
    expect(changes.at(-1)).toBe(replica.current());

    await bucket.delete("organization.3");
    await bucket.purge("device.5");
    await eventually(() => replica.current().devices.size === 0);
    await nats.kill9();
    await nats.restart();
    await eventually(() => bus.isUp());
    await bucket.delete("platform");
    await eventually(() => !replica.current().platform);
    expect(replica.current()).toEqual({ ...NO_KILL_SWITCHES, stations: new Set([4]) });
    replica.stop();
  });

  it("no completeness notice for the current run of the server: it is not trusted", async () => {
    const replica = await followSwitches(bus, QUIET);
    expect([replica.isBucketComplete(), replica.isTrusted()]).toEqual([false, false]);
    await noteComplete(bus, SWITCHES, { serverId: "another" });
    await eventually(() => replica.revision() > 0);
    expect([replica.isBucketComplete(), replica.isTrusted()]).toEqual([false, false]);
    await noteBucketsComplete(bus);
    await eventually(() => replica.isTrusted());

    await nats.kill9();
    await nats.restart();
    await eventually(() => bus.isUp());
    // The feed receives again. No notice proves yet that the restarted server has lost nothing.
    await eventually(() => replica.ageMs() < 300);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect([replica.isBucketComplete(), replica.isTrusted()]).toEqual([false, false]);
    await noteBucketsComplete(bus);
    await eventually(() => replica.isTrusted());
    await new Kvm(bus.js).open("SWITCHES").then((bucket) => bucket.delete(COMPLETE_KEYS[0]));
    await eventually(() => !replica.isTrusted());
    replica.stop();
  });

  it("its bucket is deleted and created again: it is not trusted until it has read the new one", async () => {
    const bucket = await new Kvm(bus.js).open("SWITCHES");
    await noteBucketsComplete(bus);
    for (let id = 1; id <= 60; id += 1) await bucket.put(`device.${id}`, "");
    const replica = await followSwitches(bus, QUIET);
    expect([replica.isTrusted(), replica.current().devices.size]).toEqual([true, 60]);
    /** At each change of the switches: whether the replica was trusted, and the number of switches that it had. */
    const seen: (readonly [isTrusted: boolean, known: number])[] = [];
    replica.onChange((switches) => seen.push([replica.isTrusted(), switches.devices.size]));
    await bus.jsm.streams.delete("KV_SWITCHES");
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    const newBucket = await new Kvm(bus.js).open("SWITCHES");
    await Promise.all(Array.from({ length: 60 }, (_, index) => newBucket.put(`device.${index + 1}`, "")));
    await noteBucketsComplete(bus);
    await eventually(() => seen.some(([, known]) => known === 0) && replica.current().devices.size === 60, 15_000);
    await eventually(() => replica.isTrusted());
    const started = seen.findIndex(([, known]) => known === 0);
    const early = seen.slice(started).filter(([isTrusted, known]) => isTrusted && known < 60);
    expect(early, "an incomplete replica is never trusted").toEqual([]);
    replica.stop();
  });
});
