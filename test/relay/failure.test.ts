/** What becomes of rows when a relay, the bus, the database or the actor hosts fail in between. */
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sessionKey, stationKey } from "../../services/db/outbox.ts";
import { refusalOf } from "../registry/registry-fixture.ts";
import {
  type RelayFixture,
  type RelayProcess,
  sessionDelete,
  sessionHash,
  sessionPut,
  startRelayFixture,
  stationRow,
} from "./relay-fixture.ts";

let fixture: RelayFixture;
beforeEach(async () => {
  fixture = await startRelayFixture();
});
afterEach(() => fixture.stop());

const STATIONS = Array.from({ length: 8 }, (_, index) => 1 + index);
const USERS = Array.from({ length: 4 }, (_, index) => 1 + index);
const ROUNDS = 30;
const tokenOf = (userId: number, round: number): number => userId * 1_000 + round;

/** Thirty changes of each station; of each user thirty sessions, every other one ended at once. */
async function writeRound(round: number): Promise<void> {
  for (const stationId of STATIONS) await fixture.write(stationRow(stationId, round));
  for (const userId of USERS) {
    await fixture.write(sessionPut(userId, tokenOf(userId, round)));
    if (round % 2 === 0) await fixture.write(sessionDelete(userId, tokenOf(userId, round)));
  }
}

/** Everything arrived, in order, and had its effect once. */
async function expectAllDelivered(): Promise<void> {
  for (const stationId of STATIONS) {
    const commits = await fixture.commits(stationId);
    expect(commits.map((commit) => commit.state.revision)).toEqual(Array.from({ length: ROUNDS }, (_, i) => i + 1));
    const rows = await fixture.sql<{ outbox_id: number; sequence: number; failed_reason: string | null }[]>`
      select outbox_id, sequence, failed_reason from outbox where key = ${stationKey(stationId)} order by outbox_id`;
    expect(commits.map((commit) => commit.commandId)).toEqual(rows.map((row) => `outbox:${row.outbox_id}`));
    expect(rows.every((row) => row.failed_reason === null)).toBe(true);
  }
  for (const userId of USERS) {
    for (let round = 1; round <= ROUNDS; round += 1) {
      const expected = round % 2 === 0 ? "deleted" : "put";
      expect(await fixture.session(sessionHash(tokenOf(userId, round))), `session of round ${round}`).toBe(expected);
    }
  }
}

describe("a relay that is killed again and again", () => {
  test("loses nothing, repeats nothing and keeps the order", async () => {
    await fixture.startStations();
    let relay: RelayProcess = await fixture.startRelayProcess();
    const written = new AbortController();
    const writing = (async () => {
      for (let round = 1; round <= ROUNDS; round += 1) {
        await writeRound(round);
        await delay(100);
      }
      written.abort();
    })();
    const outstanding: number[] = [];
    while (!written.signal.aborted) {
      await delay(50 + Math.random() * 300);
      await relay.kill9();
      const [row] = await fixture.sql<[{ count: number }]>`
        select count(*) as count from outbox where delivered_at is null`;
      outstanding.push(row.count);
      relay = await fixture.startRelayProcess();
    }
    await writing;
    // Otherwise nothing was interrupted, and the test would prove nothing.
    expect(Math.max(...outstanding)).toBeGreaterThan(0);
    expect(outstanding.length).toBeGreaterThan(1);
    await fixture.delivered();
    await expectAllDelivered();
  });
});

describe("of two relays", () => {
  test("one delivers and the other stands by; when the one is killed the other takes over", async () => {
    const first = await fixture.startRelayProcess();
    // Ready means that it has taken the lease, so the second finds it taken.
    const second = await fixture.startRelay();
    const leases = () => fixture.sql<{ epoch: number; holder: string }[]>`
      select epoch, holder from relay_lease where lapses_at > clock_timestamp()`;
    await fixture.write(sessionPut(1, 1));
    await fixture.delivered();
    const [before] = await leases();
    expect(before?.holder).toMatch(new RegExp(`:${first.pid}$`));
    await first.kill9();
    const killedAtMs = Date.now();
    await fixture.write(sessionPut(1, 2));
    await fixture.delivered();
    process.stderr.write(`relay take-over after kill -9: ${Date.now() - killedAtMs} ms\n`);
    expect(await leases()).toEqual([
      { epoch: (before?.epoch ?? 0) + 1, holder: expect.stringMatching(`:${process.pid}$`) },
    ]);
    // It answers flushes now, and an orderly end leaves the lease to the next at once.
    expect(await fixture.flush(sessionKey(1))).toMatchObject({ positions: { KV_SESSIONS: expect.any(Number) } });
    await second.stop();
    expect(await leases()).toEqual([]);
  });
});

describe("a relay whose connection to PostgreSQL is cut", () => {
  test("is elected anew and goes on", async () => {
    await fixture.startRelay();
    await fixture.write(sessionPut(1, 1));
    await fixture.delivered();
    await fixture.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and application_name like '%relay%'`;
    await fixture.write(sessionPut(1, 2));
    await fixture.delivered();
    expect(await fixture.session(sessionHash(2))).toBe("put");
  });
});

describe("a bus that is killed", () => {
  test("is waited for, and everything is delivered in order once it is back", async () => {
    await fixture.startStations();
    await fixture.startRelay();
    for (let round = 1; round <= ROUNDS; round += 1) {
      await writeRound(round);
      if (round === 10 || round === 20) {
        await fixture.nats.kill9();
        await fixture.write(sessionPut(9, round));
        await fixture.nats.restart();
      }
    }
    await fixture.delivered(30_000);
    await expectAllDelivered();
  });
});

describe("stations that nobody hosts", () => {
  test("keep their rows waiting, and nobody else's", async () => {
    await fixture.startRelay();
    // More stations than the relay speaks to at once, and of some of them several changes.
    for (let stationId = 1; stationId <= 100; stationId += 1) await fixture.write(stationRow(stationId, 1));
    const revisions = [1, 2, 3, 4, 5, 6];
    for (const revision of revisions.slice(1)) {
      for (const stationId of STATIONS) await fixture.write(stationRow(stationId, revision));
    }
    await delay(500);
    await fixture.write(sessionPut(1, 1));
    const startedAtMs = Date.now();
    expect(await fixture.flush(sessionKey(1))).toMatchObject({ positions: { KV_SESSIONS: expect.any(Number) } });
    expect(Date.now() - startedAtMs).toBeLessThan(1_000);
    expect((await refusalOf(fixture.flush(stationKey(1)))).code).toBe("unavailable");
    const [waiting] = await fixture.sql`select count(*) as count from outbox where delivered_at is null`;
    expect(waiting).toEqual({ count: 100 + 5 * STATIONS.length });

    await fixture.startStations();
    await fixture.delivered(30_000);
    expect(await fixture.commits(100)).toHaveLength(1);
    for (const stationId of STATIONS) {
      const commits = await fixture.commits(stationId);
      expect(commits.map((commit) => commit.state.revision)).toEqual(revisions);
    }
  });
});
