/**
 * An acknowledged commit is on the disk (I4): nats-server acknowledges and delivers a commit only after it has synced the
 * commit. The order of its system calls proves it.
 */

import { randomUUID } from "node:crypto";
import { afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { deployLimits } from "../../deploy/limits.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { openFeed } from "../../services/bus/feed.ts";
import { StationLog } from "../../services/stations/station-log.ts";
import { commitOf, STORIES } from "../machines/golden-stories.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { onlyWhere } from "../support/only-where.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startNats } from "../support/servers.ts";
import { durableWrites, findStrace, type SystemCall, sent, startTracing } from "../support/system-calls.ts";
import { eventually } from "../support/wait-for.ts";

const LOG_FILES = "/streams/STATION_LOG_0/msgs/";
const STATIONS = 8;
const APPENDS_EACH = 3;
const NEVER = Number.POSITIVE_INFINITY;
/** Sets nats-server's default for syncs. The second argument of the script is the path of the configuration. */
const SYNC_LATER = `sed -i "s/sync_interval: always/sync_interval: 2m/" "$2"`;

const undo: (() => unknown)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

/** Returns a function that calls `stop` once. After a test that has failed before the call, it is called too. */
function stopping(stop: () => Promise<unknown>): () => Promise<unknown> {
  let stopped: Promise<unknown> | undefined;
  const once = (): Promise<unknown> => (stopped ??= stop());
  undo.push(once);
  return once;
}

interface Append {
  readonly commandId: string;
  readonly sequence: number;
}

/** Several stations append at once, while a replica receives the commits. Returns the appends. */
async function appendsOf(bus: Bus): Promise<Append[]> {
  await ensureStreams(bus, { replicas: 1, logs: 1 });
  const log = new StationLog(bus, ONE_LOG);
  let delivered = 0;
  const feed = openFeed(bus, {
    stream: "STATION_LOG_0",
    filter: "station.log.>",
    onMessage: () => {
      delivered += 1;
    },
    onReset: () => undefined,
    log: QUIET,
  });
  await feed.caughtUp;
  const commit = commitOf(STORIES["an-open-order"] ?? expect.unreachable);
  const appendsOfStation = async (stationId: number): Promise<Append[]> => {
    const appends: Append[] = [];
    for (let index = 0; index < APPENDS_EACH; index += 1) {
      const commandId = `test:${randomUUID()}`;
      const expected = appends.at(-1)?.sequence ?? 0;
      const outcome = await log.append(stationId, expected, { ...commit, version: index + 1, commandId });
      if (outcome.kind !== "stored") throw new Error(`An append had the outcome ${outcome.kind}.`);
      appends.push({ commandId, sequence: outcome.sequence });
    }
    return appends;
  };
  const stationIds = Array.from({ length: STATIONS }, (_, index) => index + 1);
  const appends = (await Promise.all(stationIds.map(appendsOfStation))).flat();
  await eventually(() => delivered === appends.length);
  feed.stop();
  log.close();
  return appends;
}

/** A line for each acknowledgement or delivery that nats-server sent before it had synced the commit. */
function sentTooEarly(calls: readonly SystemCall[], { commandId, sequence }: Append): string[] {
  const [stored, ...more] = durableWrites(calls, LOG_FILES, commandId);
  if (stored === undefined || more.length > 0)
    throw new Error(`${commandId} was written ${more.length} times too often.`);
  const acknowledgement = `{"stream":"STATION_LOG_0","seq":${sequence}}`;
  const acknowledged = sent(calls).filter(({ data }) => data.includes(acknowledgement));
  const delivered = sent(calls).filter(({ data }) => data.includes(commandId));
  expect(acknowledged, `acknowledgements of ${sequence}`).toHaveLength(1);
  expect(delivered, `deliveries of ${commandId}`).toHaveLength(1);
  const syncedAt = stored.sync?.ended?.line ?? NEVER;
  return [
    ...acknowledged.map((call) => ({ what: `acknowledgement of ${sequence}`, call })),
    ...delivered.map((call) => ({ what: `delivery of ${sequence}`, call })),
  ].flatMap(({ what, call }) => (call.began.line > syncedAt ? [] : [what]));
}

async function tooEarlyAt(before?: string): Promise<string[]> {
  const tracer = await startTracing("nats-server");
  undo.push(tracer.remove);
  const nats = await startNats({ path: tracer.traced(inject("natsBinary").path, before) });
  const stopNats = stopping(() => nats.stop());
  const bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
  const closeBus = stopping(() => bus.close());
  const appends = await appendsOf(bus);
  await closeBus();
  await stopNats();
  const calls = await tracer.calls();
  return appends.flatMap((append) => sentTooEarly(calls, append));
}

const isLinux = process.platform === "linux";

describe.runIf(onlyWhere(isLinux, "the order of system calls"))("an acknowledged commit is on the disk", () => {
  beforeAll(async () => {
    // This fetches strace when the machine has none, so that the time does not count as time of a test.
    await findStrace();
  }, deployLimits.aptDownloadMs);

  test("a commit of a station: synced before it is acknowledged or delivered", async () => {
    expect(await tooEarlyAt()).toEqual([]);
  });

  test("a commit at a server that syncs later: the check finds each acknowledgement and delivery too early", async () => {
    expect(await tooEarlyAt(SYNC_LATER)).toHaveLength(2 * STATIONS * APPENDS_EACH);
  });
});
