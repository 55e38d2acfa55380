/** The streams: `migrate` alone creates and changes them, and each process checks them at its start. */
import { beforeAll, describe, expect, it } from "vitest";
import type { Bus } from "../../services/bus/connection.ts";
import { checkStreams, ensureStreams } from "../../services/bus/ensure-streams.ts";
import { LAYOUT_VERSION } from "../../services/bus/stream-config.ts";
import { BUCKETS, STATEMENT_FILES, STREAMS } from "../../services/bus/streams.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { startBus } from "../support/start-bus.ts";

/** A new connection for each group of tests. */
let bus: Bus;
async function newBus(): Promise<() => Promise<void>> {
  const started = await startBus();
  bus = started.bus;
  return started.stop;
}

describe("ensureStreams", () => {
  beforeAll(newBus);

  const names = [
    STATION_LOG.name,
    ...STREAMS.map(({ name }) => name),
    ...BUCKETS.map(({ name }) => `KV_${name}`),
    `OBJ_${STATEMENT_FILES.name}`,
  ];

  it("three processes start at once: each stream and bucket exists once", async () => {
    await Promise.all([1, 2, 3].map(() => ensureStreams(bus, { replicas: 1, logs: 1 })));
    const found = await bus.jsm.streams.list().next();
    expect(found.map(({ config }) => config.name).toSorted()).toEqual(names.toSorted());
  });

  it("a stream with a changed setting: a further start restores the setting and keeps the messages", async () => {
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    await bus.js.publish("station.log.0.00.1", "first");
    await bus.jsm.streams.update("STATION_LOG_0", { max_msgs_per_subject: 3 });
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    const { config, state } = await bus.jsm.streams.info("STATION_LOG_0");
    expect(config.max_msgs_per_subject).toBe(64);
    expect(state.messages).toBe(1);
  });

  it("a published heartbeat: the stream stores it and republishes it once", async () => {
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    const republished: string[] = [];
    bus.nc.subscribe("station.heard.>", {
      callback: (_error, message) => {
        republished.push(message.subject);
      },
    });
    await bus.js.publish("station.heartbeat.00.1.2", "{}");
    await bus.nc.flush();
    expect(republished).toEqual(["station.heard.00.1.2"]);
    const { state } = await bus.jsm.streams.info("LIVENESS");
    expect(state.messages).toBe(1);
  });
});

describe("the check of the streams", () => {
  beforeAll(newBus);
  const refusal = (sentence: string) => ({
    code: "bus_not_migrated",
    message: expect.stringMatching(new RegExp(`${sentence}: run .npm run migrate., and start again\\.$`)) as string,
  });

  it("a new bus: refused with the next step, and nothing is created", async () => {
    await expect(checkStreams(bus)).rejects.toMatchObject(refusal("has not been prepared for this service"));
    expect(await bus.jsm.streams.list().next()).toEqual([]);
  });

  it("a bus that was migrated: returns its layout", async () => {
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    expect(await checkStreams(bus)).toMatchObject({ replicas: 1 });
  });

  it("a missing stream: refused with its name", async () => {
    await bus.jsm.streams.delete("LIVENESS");
    await expect(checkStreams(bus)).rejects.toMatchObject(refusal("has no stream LIVENESS"));
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    await checkStreams(bus);
  });

  it("a stream with a changed setting: refused with the setting's name, and left unchanged", async () => {
    await bus.jsm.streams.update("KV_CREDENTIALS", { max_msgs_per_subject: 3 });
    await expect(checkStreams(bus)).rejects.toMatchObject(
      refusal("has a stream KV_CREDENTIALS whose max_msgs_per_subject is not what this version needs"),
    );
    expect((await bus.jsm.streams.info("KV_CREDENTIALS")).config.max_msgs_per_subject).toBe(3);
    await ensureStreams(bus, { replicas: 1, logs: 1 });
  });

  it("a bus of a newer version: accepted, because older processes run until they are replaced", async () => {
    const { config } = await bus.jsm.streams.info("KV_INSTALLATION");
    const metadata = { ...config.metadata, "device-payments-layout": String(LAYOUT_VERSION + 1) };
    await bus.jsm.streams.update("KV_INSTALLATION", { metadata });
    await bus.jsm.streams.update("KV_CREDENTIALS", { max_msgs_per_subject: 3 });
    expect(await checkStreams(bus)).toMatchObject({ replicas: 1, version: LAYOUT_VERSION + 1 });
  });
});
