import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CommitNotice } from "../../services/audit/copy/commit-notice.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";

const SUBJECTS = "station.log.0.*.*";
const COMMIT = "station.log.0.00.1";
const SHORT_MS = 50;
const LONG_MS = 60_000;

let nats: TestServer;
let bus: Bus;
let host: Bus;
beforeAll(async () => {
  nats = await startNats();
  bus = await connectBus({ url: nats.url, name: "copier", log: QUIET });
  host = await connectBus({ url: nats.url, name: "host", log: QUIET });
});
afterAll(async () => {
  await Promise.all([bus.close(), host.close()]);
  await nats.stop();
});

async function armed(): Promise<CommitNotice> {
  const notice = new CommitNotice(bus.nc, SUBJECTS);
  notice.arm();
  await bus.nc.flush();
  return notice;
}

describe("the notice of a commit", () => {
  const never = new AbortController().signal;

  test("a host sends a commit while the copier waits: it wakes the copier", async () => {
    const notice = await armed();
    const woken = notice.within(LONG_MS, never);
    host.nc.publish(COMMIT, "a commit");
    expect(await woken).toBe(true);
    expect(notice.isArmed).toBe(false);
  });

  test("a commit that was sent before the copier waits: it is not missed", async () => {
    const notice = await armed();
    host.nc.publish(COMMIT, "a commit");
    await host.nc.flush();
    await bus.nc.flush();
    expect(await notice.within(LONG_MS, never)).toBe(true);
  });

  test("no commit: the wait ends, and the notice stays armed", async () => {
    const notice = await armed();
    host.nc.publish("station.confirm.0", "no commit");
    expect(await notice.within(SHORT_MS, never)).toBe(false);
    expect(notice.isArmed).toBe(true);
    notice.disarm();
  });

  test("the copier stops: the wait ends", async () => {
    const notice = await armed();
    const stopping = new AbortController();
    const waiting = notice.within(LONG_MS, stopping.signal);
    stopping.abort();
    expect(await waiting).toBe(false);
    notice.disarm();
  });

  test("many commits: the server sends only the first one", async () => {
    const notice = await armed();
    const before = bus.nc.stats().inMsgs;
    for (let count = 0; count < 100; count += 1) host.nc.publish(COMMIT, "a commit");
    await host.nc.flush();
    await bus.nc.flush();
    expect(bus.nc.stats().inMsgs - before).toBe(1);
    expect(await notice.within(LONG_MS, never)).toBe(true);
  });
});
