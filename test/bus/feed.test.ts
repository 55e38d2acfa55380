import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Bus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { type Feed, type FeedMessage, openFeed } from "../../services/bus/feed.ts";
import { QUIET } from "../support/quiet-log.ts";
import type { TestServer } from "../support/servers.ts";
import { startBus } from "../support/start-bus.ts";
import { eventually } from "../support/wait-for.ts";

const textOf = (message: FeedMessage | undefined): string => Buffer.from(message?.data ?? []).toString();

describe("a feed", () => {
  let nats: TestServer;
  let bus: Bus;
  const feeds: Feed[] = [];
  beforeAll(async () => {
    const started = await startBus();
    ({ nats, bus } = started);
    return started.stop;
  });
  beforeEach(async () => {
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    await bus.jsm.streams.purge("STATION_LOG_0");
  });
  afterEach(() => {
    for (const feed of feeds.splice(0)) feed.stop();
  });

  const store = async (station: number, text: string): Promise<number> =>
    (await bus.js.publish(`station.log.0.00.${station}`, text)).seq;
  const open = (headersOnly = false): { feed: Feed; messages: FeedMessage[]; resets: () => number } => {
    const messages: FeedMessage[] = [];
    let resets = 0;
    const feed = openFeed(bus, {
      stream: "STATION_LOG_0",
      filter: "station.log.0.00.*",
      headersOnly,
      onMessage: (message) => messages.push(message),
      onReset: () => {
        resets += 1;
      },
      log: QUIET,
    });
    feeds.push(feed);
    return { feed, messages, resets: () => resets };
  };

  it("a start: it delivers the newest message of each subject, and then each later one", async () => {
    for (const text of ["a1", "a2"]) await store(1, text);
    await store(2, "b1");
    const { feed, messages } = open();
    await feed.caughtUp;
    expect(messages.map(textOf)).toEqual(["a2", "b1"]);
    for (const text of ["a3", "a4"]) await store(1, text);
    await eventually(() => messages.length === 4);
    expect(messages.slice(2).map(textOf)).toEqual(["a3", "a4"]);
    expect(feed.behind()).toBe(0);
  });

  it("it is stopped while it starts: no consumer is left, and nothing is delivered after that", async () => {
    await store(1, "a1");
    const { feed, messages } = open();
    const request = bus.nc.subscribe("$JS.API.CONSUMER.CREATE.>", { max: 1 });
    // The feed stops while the server creates the consumer.
    for await (const _ of request) feed.stop();
    const handled = messages.length;
    await pause(500);
    expect(messages).toHaveLength(handled);
    expect(await bus.jsm.consumers.list("STATION_LOG_0").next()).toEqual([]);
  });

  it("an empty stream: it has caught up at once", async () => {
    const { feed, messages } = open();
    await feed.caughtUp;
    expect(messages).toEqual([]);
  });

  it("only headers are requested: it delivers no bodies, and the time when each message was stored", async () => {
    await store(1, "a long body");
    const { feed, messages } = open(true);
    await feed.caughtUp;
    expect(messages[0]?.data.length).toBe(0);
    expect(Math.abs((messages[0]?.storedAtMs ?? 0) - Date.now())).toBeLessThan(5_000);
  });

  it("nats-server is killed repeatedly: the feed misses no message and delivers none twice", async () => {
    const { feed, messages } = open();
    await feed.caughtUp;
    const stored: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (let count = 0; count < 40; count += 1) stored.push(await store(count % 3, `${round}-${count}`));
      await nats.kill9();
      await nats.restart();
      await eventually(() => bus.isUp());
    }
    for (let count = 0; count < 40; count += 1) stored.push(await store(count % 3, `last-${count}`));
    await eventually(() => (messages.at(-1)?.sequence ?? 0) === stored.at(-1));
    expect(messages.map(({ sequence }) => sequence)).toEqual(stored);
  });

  it("the server has deleted its consumer: the feed notices it within 1.5 s and continues", async () => {
    await store(1, "before");
    const { feed, messages } = open();
    await feed.caughtUp;
    const [consumer] = await bus.jsm.consumers.list("STATION_LOG_0").next();
    await bus.jsm.consumers.delete("STATION_LOG_0", consumer?.name ?? "");
    await store(1, "after");
    await eventually(() => textOf(messages.at(-1)) === "after", 1_500);
    expect(messages).toHaveLength(2);
  });

  it("no messages: it receives heartbeats, and is silent only while the server is down", async () => {
    const { feed } = open();
    await feed.caughtUp;
    for (let poll = 0; poll < 10; poll += 1) {
      await pause(100);
      expect(feed.silentForMs()).toBeLessThan(1_000);
    }
    await nats.kill9();
    await pause(1_600);
    expect(feed.silentForMs()).toBeGreaterThan(1_500);
    await nats.restart();
    await eventually(() => feed.silentForMs() < 500);
  });

  it("its stream was deleted and created again: it starts over", async () => {
    for (const text of ["old1", "old2", "old3"]) await store(1, text);
    const { feed, messages, resets } = open();
    await feed.caughtUp;
    await bus.jsm.streams.delete("STATION_LOG_0");
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    await store(1, "new");
    await eventually(() => textOf(messages.at(-1)) === "new");
    expect(resets()).toBe(1);
  });

  it("its receiver throws at a message: the feed continues with the next one", async () => {
    const texts: string[] = [];
    const feed = openFeed(bus, {
      stream: "STATION_LOG_0",
      filter: "station.log.0.00.*",
      onMessage: (message) => {
        texts.push(textOf(message));
        if (texts.length === 1) throw new Error("not understood");
      },
      onReset: () => undefined,
      log: QUIET,
    });
    feeds.push(feed);
    await feed.caughtUp;
    await store(1, "bad");
    await store(1, "good");
    await eventually(() => texts.length === 2);
  });
});
