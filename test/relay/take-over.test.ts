/**
 * How soon another relay takes over when the first one has ended or is stalled, and what a stalled relay does when it
 * continues. The file prints how long each take-over took.
 */
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { sessionKey } from "../../services/db/outbox.ts";
import { startFaultyServer } from "../support/faulty-server.ts";
import {
  type RelayFixture,
  type RelayProcess,
  sessionDelete,
  sessionHash,
  sessionPut,
  startRelayFixture,
} from "./relay-fixture.ts";

/** The lease lapses within three seconds. Then the next relay delivers at once. */
const EXPIRES_MS = 3_000;

let fixture: RelayFixture;
beforeEach(async () => {
  fixture = await startRelayFixture();
});
afterEach(() => fixture.stop());

/** The first of two relays delivers and then fails. Returns the time from the failure until a sign-out is delivered. */
async function takeOverMs(what: string, first: RelayProcess, fail: () => unknown): Promise<number> {
  await fixture.startRelay();
  await fixture.write(sessionPut(1, 1));
  await fixture.delivered();
  const failedAtMs = performance.now();
  await fail();
  await fixture.write(sessionDelete(1, 1));
  await fixture.delivered();
  expect(await fixture.session(sessionHash(1))).toBe("deleted");
  const tookMs = performance.now() - failedAtMs;
  process.stderr.write(`relay take-over after ${what}: ${Math.round(tookMs)} ms\n`);
  const [lease] = await fixture.sql<{ holder: string }[]>`select holder from relay_lease`;
  expect(lease?.holder).not.toMatch(new RegExp(`:${first.pid}$`));
  return tookMs;
}

describe("another relay delivers", () => {
  test("when the first one is stalled: within three seconds, and flushes reach it at once", async () => {
    const first = await fixture.startRelayProcess();
    const tookMs = await takeOverMs("SIGSTOP", first, () => process.kill(first.pid, "SIGSTOP"));
    expect(tookMs).toBeLessThan(EXPIRES_MS);
    for (let user = 2; user <= 6; user += 1) {
      await fixture.write(sessionPut(user, user));
      const startedAtMs = performance.now();
      expect(await fixture.flush(sessionKey(user))).toMatchObject({ positions: { KV_SESSIONS: expect.any(Number) } });
      expect(performance.now() - startedAtMs).toBeLessThan(1_000);
    }
  });

  test("when the first one is killed: within three seconds", async () => {
    const first = await fixture.startRelayProcess();
    expect(await takeOverMs("SIGKILL", first, () => first.kill9())).toBeLessThan(EXPIRES_MS);
  });

  test("when the network of the first one loses every packet: within three seconds", async () => {
    const bus = await startFaultyServer(fixture.nats.url, "none");
    const store = await startFaultyServer(fixture.database.url, "none");
    const first = await fixture.startRelayProcess({ natsUrl: bus.url, databaseUrl: store.url });
    const tookMs = await takeOverMs("a network that loses every packet", first, () => {
      bus.become("silent");
      store.become("silent");
    });
    expect(tookMs).toBeLessThan(EXPIRES_MS);
    await first.kill9();
    await Promise.all([bus.stop(), store.stop()]);
  });

  test("when only the connection of the first one to the bus loses every packet: within three seconds", async () => {
    const bus = await startFaultyServer(fixture.nats.url, "none");
    const first = await fixture.startRelayProcess({ natsUrl: bus.url, databaseUrl: fixture.database.url });
    const tookMs = await takeOverMs("a bus connection that loses every packet", first, () => bus.become("silent"));
    expect(tookMs).toBeLessThan(EXPIRES_MS);
    await first.kill9();
    await bus.stop();
  });

  test("when the server of the first one has lost its majority: within three seconds", async () => {
    await fixture.startRelay();
    await fixture.startRelay({ by: { natsUrl: fixture.nats.url, databaseUrl: fixture.database.url } });
    const epochs = () => fixture.sql`select epoch from relay_lease where lapses_at > clock_timestamp()`;
    expect(await epochs()).toEqual([{ epoch: 1 }]);
    vi.spyOn(fixture.bus, "hasQuorum").mockReturnValue(false);
    await expect.poll(epochs, { timeout: EXPIRES_MS }).toEqual([{ epoch: 2 }]);
  });

  test("when the first one is stopped: within a second", async () => {
    const first = await fixture.startRelayProcess();
    await fixture.startRelay();
    await first.stop();
    const endedAtMs = performance.now();
    await fixture.write(sessionPut(1, 1));
    await fixture.delivered();
    const tookMs = performance.now() - endedAtMs;
    process.stderr.write(`relay take-over after the end by SIGTERM: ${Math.round(tookMs)} ms\n`);
    expect(tookMs).toBeLessThan(1_000);
  });

  test("when the first one is stopped while its checks of the streams have no answer: within a second", async () => {
    const first = await fixture.startRelay();
    await fixture.startRelay();
    vi.spyOn(fixture.bus.jsm.streams, "info").mockReturnValue(new Promise(() => undefined));
    // The first relay checks the streams each second.
    await pause(1_200);
    const endedAtMs = performance.now();
    const ended = first.stop();
    await fixture.write(sessionPut(1, 1));
    await fixture.delivered();
    expect(performance.now() - endedAtMs).toBeLessThan(1_000);
    await ended;
  });
});

describe("a stalled relay that continues", () => {
  test("another relay has taken over: the stalled one delivers again only with a new lease", async () => {
    const first = await fixture.startRelayProcess();
    const second = await fixture.startRelay();
    await fixture.write(sessionPut(1, 1));
    await fixture.delivered();
    const holders = () => fixture.sql`select epoch, holder from relay_lease where lapses_at > clock_timestamp()`;
    const ofSecond = [{ epoch: 2, holder: expect.stringMatching(`:${process.pid}$`) }];
    process.kill(first.pid, "SIGSTOP");
    await expect.poll(holders).toEqual(ofSecond);
    process.kill(first.pid, "SIGCONT");
    await expect.poll(() => first.logged()).toMatch(/lost its lease|taken over/);
    expect(await holders()).toEqual(ofSecond);
    await second.stop();
    await fixture.write(sessionPut(2, 2));
    await fixture.delivered();
    const [lease] = await fixture.sql<{ epoch: number; holder: string }[]>`select epoch, holder from relay_lease`;
    expect(lease).toEqual({ epoch: 3, holder: expect.stringMatching(`:${first.pid}$`) });
  });
});
