import { afterEach, beforeEach, expect, it } from "vitest";
import type { Bus } from "../../services/bus/connection.ts";
import { type Feed, openFeed } from "../../services/bus/feed.ts";
import { StationLogs } from "../../services/bus/streams.ts";
import { comeBackWith, copyData } from "../support/nats-data.ts";
import { QUIET } from "../support/quiet-log.ts";
import type { TestServer } from "../support/servers.ts";
import { startPreparedBus } from "../support/start-bus.ts";
import { eventually } from "../support/wait-for.ts";

let nats: TestServer;
let bus: Bus;
let feed: Feed | undefined;
beforeEach(async () => {
  const started = await startPreparedBus();
  ({ nats, bus } = started);
  return started.stop;
});
afterEach(() => feed?.stop());

const store = (station: number, text: string) => bus.js.publish(`station.log.0.00.${station}`, text);

const LOG = new StationLogs(1).of(1);

/** The newest text that the feed has delivered for each station. It is cleared when the feed starts over. */
function follow(): { readonly known: Map<string, string>; readonly resets: () => number } {
  const known = new Map<string, string>();
  let resets = 0;
  feed = openFeed(bus, {
    stream: "STATION_LOG_0",
    filter: LOG.commitsAndBeats,
    beats: LOG.beats,
    onMessage: ({ subject, data }) => void known.set(subject.slice(-1), Buffer.from(data).toString()),
    onReset: () => {
      resets += 1;
      known.clear();
    },
    log: QUIET,
  });
  return { known, resets: () => resets };
}

it("feed: the stream loses its end and grows beyond it before the feed reconnects; the feed starts over", async () => {
  await store(1, "kept");
  const short = copyData(nats);
  for (const text of ["second life", "of station 2", "is longer"]) await store(2, text);
  const grown = copyData(nats);
  await comeBackWith(nats, short);
  await eventually(() => bus.isUp());
  await store(1, "lost");
  const { known, resets } = follow();
  await eventually(() => known.get("1") === "lost");
  // Now another message has the sequence of the lost one, and the stream continues after it.
  await comeBackWith(nats, grown);
  await eventually(() => known.get("2") === "is longer");
  expect(Object.fromEntries(known)).toEqual({ 1: "kept", 2: "is longer" });
  expect(resets()).toBe(1);
});

it("feed: the server is killed and loses nothing; the feed continues", async () => {
  await store(1, "first");
  const { known, resets } = follow();
  await eventually(() => known.get("1") === "first");
  copyData(nats);
  await nats.kill9();
  await nats.restart();
  await eventually(() => bus.isUp());
  await store(1, "second");
  await eventually(() => known.get("1") === "second");
  expect(resets()).toBe(0);
});

it("feed: the stream loses only a beat; the feed delivers the message that gets the beat's sequence", async () => {
  await store(1, "kept");
  const { known, resets } = follow();
  await eventually(() => known.get("1") === "kept");
  const short = copyData(nats);
  expect(await feed?.prove()).toBe(true);
  await comeBackWith(nats, short);
  await eventually(() => bus.isUp());
  await store(2, "in place of the beat");
  await eventually(() => known.get("2") === "in place of the beat", 5_000);
  expect(resets()).toBe(0);
});
