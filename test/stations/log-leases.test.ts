/** Which host owns which partition, by the leases in the log. The hosts of this file serve no commands. */

import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { LEASES, type StationLogDefinition } from "../../services/bus/streams.ts";
import { createLog } from "../../services/runtime/log.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { LogLeases, type LogPlace } from "../../services/stations/ownership.ts";
import { Link } from "../cluster/link.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { eventually } from "../support/wait-for.ts";
import { startFaultProxy } from "./fault-proxy.ts";

const SILENT = createLog({ service: "test", level: "silent" });
const PLACE: LogPlace = {
  stream: `KV_${LEASES.name}`,
  prefix: `$KV.${LEASES.name}.host.`,
  partitions: Array.from({ length: PARTITION_COUNT }, (_, partition) => partition),
};

interface Host {
  readonly leases: LogLeases;
  readonly bus: Bus;
  readonly held: Set<number>;
  /** The calls that the leases have made to this host, oldest first. */
  readonly calls: ("acquire" | "release" | "drop" | "listen" | "listen no more")[];
  /** While this is false, the host does not renew its lease. */
  canServe: boolean;
}

let nats: TestServer;
let hosts: Host[];
/** End what is between a host and the server, after the hosts. */
let stops: (() => Promise<void>)[];
beforeEach(async () => {
  hosts = [];
  stops = [];
  nats = await startNats();
  const bus = await connectBus({ url: nats.url, name: "test", log: SILENT });
  await ensureStreams(bus, { replicas: 1, logs: 1 });
  await bus.close();
});
afterEach(async () => {
  await Promise.all(hosts.map(({ leases }) => leases.stop()));
  await Promise.all(hosts.map(({ bus }) => bus.close()));
  await Promise.all(stops.map((stop) => stop()));
  await nats.stop();
});

async function startHost(hostId: string, { place = PLACE, url = nats.url } = {}): Promise<Host> {
  const bus = await connectBus({ url, name: hostId, log: SILENT });
  const held = new Set<number>();
  const calls: Host["calls"] = [];
  const take = (oneCall: Host["calls"][number], partitions: readonly number[], isHeld: boolean): void => {
    calls.push(oneCall);
    for (const partition of partitions) {
      if (isHeld) held.add(partition);
      else held.delete(partition);
    }
  };
  const leases = new LogLeases(place, {
    bus,
    log: SILENT,
    hostId,
    canServe: () => host.canServe,
    acquire: (partitions) => take("acquire", partitions, true),
    release: async (partitions) => take("release", partitions, false),
    drop: (partitions) => take("drop", partitions, false),
    setListening: (_partitions, isListening) => void calls.push(isListening ? "listen" : "listen no more"),
  });
  const host: Host = { leases, bus, held, calls, canServe: true };
  hosts.push(host);
  await leases.start();
  return host;
}

async function startTwo({ secondUrl = nats.url } = {}): Promise<readonly [Host, Host]> {
  const [first, second] = [await startHost("first"), await startHost("second", { url: secondUrl })];
  await eventually(() => first.held.size + second.held.size === PARTITION_COUNT && second.held.size > 0);
  return [first, second];
}

/** Watches whether a partition has two owners. The result ends it and returns those that had two at some moment. */
function watchOwners(): () => readonly number[] {
  const twice = new Set<number>();
  const timer = setInterval(() => {
    const [first, second] = hosts;
    if (first?.leases.isCurrent() !== true || second?.leases.isCurrent() !== true) return;
    for (const partition of first.held) if (second.held.has(partition)) twice.add(partition);
  }, 1);
  return () => {
    clearInterval(timer);
    return [...twice];
  };
}

describe("leases of partitions", () => {
  it("no host can renew for 4 s: no host is removed, and each keeps its partitions", async () => {
    const [first, second] = await startTwo();
    const before = [new Set(first.held), new Set(second.held)];
    for (const { calls } of hosts) calls.length = 0;
    nats.signal("SIGSTOP");
    await pause(4_000);
    expect(hosts.map(({ leases }) => leases.isCurrent())).toEqual([false, false]);
    nats.signal("SIGCONT");
    await eventually(() => first.leases.isCurrent() && second.leases.isCurrent());
    await pause(STATION_LIMITS.renewMs);
    expect([first.held, second.held]).toEqual(before);
    expect(hosts.map(({ calls }) => calls)).toEqual([
      ["listen no more", "listen"],
      ["listen no more", "listen"],
    ]);
  });

  it("one host does not renew: the other one takes over all partitions, and no partition has two owners", async () => {
    const [first, second] = await startTwo();
    const endWatch = watchOwners();
    first.canServe = false;
    // `ownership.test.ts` tests how soon this happens.
    await eventually(() => second.held.size === PARTITION_COUNT);
    // At its next renewal, the first host finds that it was removed.
    first.canServe = true;
    first.calls.length = 0;
    await eventually(() => first.held.size > 0 && first.held.size + second.held.size === PARTITION_COUNT);
    expect(endWatch()).toEqual([]);
    // On a slow machine, the host notices only now that its lease has lapsed, and calls "listen no more" first.
    expect(first.calls.find((oneCall) => oneCall !== "listen no more")).toBe("drop");
  });

  it("a host that cannot renew for 2 s: it keeps its partitions", async () => {
    const [first, second] = await startTwo();
    const before = new Set(first.held);
    second.calls.length = 0;
    first.canServe = false;
    await eventually(() => !first.leases.isCurrent());
    first.canServe = true;
    await eventually(() => first.leases.isCurrent());
    await pause(STATION_LIMITS.takeOverMs - 1_500);
    expect(first.held).toEqual(before);
    expect(second.calls).toEqual([]);
  });

  it("a renewal that is stored after its timeout: the host continues", async () => {
    const first = await startHost("first");
    first.calls.length = 0;
    const late = JSON.stringify({ holds: "f".repeat(PARTITION_COUNT / 4), isLeaving: false, count: 0 });
    await first.bus.nc.request(`${PLACE.prefix}first`, late, { timeout: 10_000 });
    await pause(2 * STATION_LIMITS.renewMs);
    expect(first.leases.isCurrent()).toBe(true);
    expect(first.calls).toEqual([]);
  });

  it("acknowledgements take 0.8 s: each renewal counts until its lease is over", async () => {
    const link = await Link.open(Number(new URL(nats.url).port));
    stops.push(() => link.close());
    const url = Object.assign(new URL(nats.url), { port: link.port }).href;
    const first = await startHost("first", { url });
    first.calls.length = 0;
    link.slow(400);
    for (let gap = 0; gap < 2; gap += 1) {
      await eventually(() => !first.leases.isCurrent());
      await eventually(() => first.leases.isCurrent());
    }
    expect(first.calls).toEqual([]);
    link.join();
  });

  it("the renewals by which a silence is measured come late: the silent host has stopped before it is removed", async () => {
    const proxy = await startFaultProxy(nats.url);
    stops.push(() => proxy.stop());
    const [first, second] = await startTwo({ secondUrl: proxy.url });
    // Each host renews ten times a second while another one is late.
    second.canServe = false;
    await pause(STATION_LIMITS.lateMs + 200);
    const release = proxy.holdToServer();
    second.canServe = true;
    await eventually(() => proxy.held().includes(`${PLACE.prefix}second`));
    await pause(600);
    // The first host's last record is stored before a renewal that the second host has sent long before.
    await eventually(() => first.leases.renewalAgeMs() < 50);
    first.canServe = false;
    const endWatch = watchOwners();
    release();
    await eventually(() => second.held.size === PARTITION_COUNT);
    expect(endWatch()).toEqual([]);
  });

  it("two hosts that start at once: each partition has one owner", async () => {
    const starting = Promise.all([startHost("first"), startHost("second")]);
    const endWatch = watchOwners();
    const [first, second] = await starting;
    const isShared = () => Math.min(first.held.size, second.held.size) > PARTITION_COUNT / 4;
    await eventually(() => first.held.size + second.held.size === PARTITION_COUNT && isShared());
    expect(endWatch()).toEqual([]);
  });

  it("a host that ended long ago: the next host deletes its record from the log", async () => {
    const log = ONE_LOG.all[0] as StationLogDefinition;
    const place = { ...PLACE, stream: log.name, prefix: `${log.leases}.`, removedForMs: 0 };
    const first = await startHost("first", { place });
    await first.leases.stop();
    const stored = async (): Promise<string[]> => {
      const query = { subjects_filter: `${log.leases}.*` };
      return Object.keys((await first.bus.jsm.streams.info(log.name, query)).state.subjects ?? {});
    };
    expect(await stored()).toEqual([`${place.prefix}first`]);
    const second = await startHost("second", { place });
    await expect.poll(stored).toEqual([`${place.prefix}second`]);
    expect(second.held.size).toBe(PARTITION_COUNT);
  });
});
