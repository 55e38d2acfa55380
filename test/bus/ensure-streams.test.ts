import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { BUCKETS, STATEMENT_FILES, STREAMS } from "../../services/bus/streams.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { QUIET } from "./waiting.ts";

describe("ensureStreams", () => {
  let nats: TestServer;
  let bus: Bus;
  beforeAll(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
  });
  afterAll(async () => {
    await bus.close();
    await nats.stop();
  });

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
