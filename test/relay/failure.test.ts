/**
 * Outbox rows when a relay, the bus, the database or the actor hosts fail, and when a relay is stalled. The short form kills
 * a relay and the bus twice while it writes twenty rounds. The long form of `npm run soak` kills them six times in sixty
 * rounds (RELAY_ROUNDS).
 */
import { pino } from "pino";
import { Registry } from "prom-client";
import { describe, expect, type TestContext, test, vi } from "vitest";
import { switchKeyOf } from "../../services/bus/messages/kill-switches.ts";
import { type BucketDefinition, CREDENTIALS, ROBOTICS_EVENTS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { roboticsEventSubject, stationCommandSubject } from "../../services/bus/subjects.ts";
import { credentialKey, type OutboxRow, sessionKey, stationKey, switchKey } from "../../services/db/outbox.ts";
import { noteComplete, readNoticeSequences } from "../../services/relay/buckets.ts";
import { RELAY_LIMITS } from "../../services/relay/limits.ts";
import {
  type Mark,
  noteAnnounced,
  noteMarks,
  selectMarks,
  selectPendingAnnouncements,
} from "../../services/relay/sql/bus-state.ts";
import { LeaseLostError, releaseLease, renewLease, takeLease } from "../../services/relay/sql/leader-lease.ts";
import { forRequest } from "../../services/runtime/log.ts";
import { refusalOf } from "../registry/registry-fixture.ts";
import { startFaultProxy } from "../stations/fault-proxy.ts";
import {
  type RelayFixture,
  roboticsRow,
  sessionDelete,
  sessionHash,
  sessionPut,
  startRelayFixture,
  stationRow,
} from "./relay-fixture.ts";

/** Most tests run at the same time, so each has a separate fixture. */
async function fixtureOf({ onTestFinished }: TestContext): Promise<RelayFixture> {
  const fixture = await startRelayFixture();
  onTestFinished(() => fixture.stop());
  return fixture;
}

const STATIONS = Array.from({ length: 8 }, (_, index) => 1 + index);
const USERS = Array.from({ length: 4 }, (_, index) => 1 + index);
const ROUNDS = Number(process.env["RELAY_ROUNDS"] ?? 20);
const tokenOf = (userId: number, round: number): number => userId * 1_000 + round;

/** Writes a change of each station and a session of each user. In every second round, the sessions are ended at once. */
async function writeRound(fixture: RelayFixture, round: number): Promise<void> {
  for (const stationId of STATIONS) await fixture.write(stationRow(stationId, round));
  for (const userId of USERS) {
    await fixture.write(sessionPut(userId, tokenOf(userId, round)));
    if (round % 2 === 0) await fixture.write(sessionDelete(userId, tokenOf(userId, round)));
  }
}

async function writeRounds(fixture: RelayFixture, first: number, last: number): Promise<void> {
  for (let round = first; round <= last; round += 1) await writeRound(fixture, round);
}

/** Checks that each row was delivered, in order, and had its effect once. */
async function expectAllDelivered(fixture: RelayFixture): Promise<void> {
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

describe.concurrent("a relay that is killed repeatedly", () => {
  test("every row is delivered once and in order", async (context) => {
    const fixture = await fixtureOf(context);
    await fixture.startStations();
    const handled = async (): Promise<number> =>
      (await fixture.sql`select from outbox where delivered_at is not null`).length;
    const outstanding: number[] = [];
    for (let round = 1; round <= ROUNDS; round += 10) {
      const relay = await fixture.startRelayProcess();
      const before = await handled();
      const writing = writeRounds(fixture, round, round + 9);
      await context.expect.poll(handled, { interval: 5 }).toBeGreaterThan(before + (round % 30));
      await relay.kill9();
      outstanding.push(await fixture.outstanding());
      await writing;
    }
    await fixture.startRelayProcess();
    // The test proves something only when a kill has interrupted deliveries.
    expect(Math.max(...outstanding)).toBeGreaterThan(0);
    await fixture.delivered();
    await expectAllDelivered(fixture);
  });
});

describe.concurrent("two relays", () => {
  test("the first one is killed: the other one takes over with the next epoch of the lease", async (context) => {
    const fixture = await fixtureOf(context);
    const first = await fixture.startRelayProcess();
    // The first relay is ready, so it has the lease, and the second one cannot acquire it.
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
    // The second relay answers flushes now, and releases the lease when it stops.
    expect(await fixture.flush(sessionKey(1))).toMatchObject({ positions: { KV_SESSIONS: expect.any(Number) } });
    await second.stop();
    expect(await leases()).toEqual([]);
  });
});

describe.concurrent("a relay whose connection to PostgreSQL is cut", () => {
  test("it delivers again", async (context) => {
    const fixture = await fixtureOf(context);
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

describe.concurrent("a bus that is killed", () => {
  test("every row is delivered once and in order after its restart", async (context) => {
    const fixture = await fixtureOf(context);
    await fixture.startStations();
    await fixture.startRelay();
    for (let round = 1; round <= ROUNDS; round += 10) {
      await writeRounds(fixture, round, round + 9);
      await fixture.nats.kill9();
      await fixture.write(sessionPut(9, round));
      await fixture.nats.restart();
    }
    await fixture.delivered(30_000);
    await expectAllDelivered(fixture);
  });
});

test.concurrent("a row that cannot be delivered: its log line has the id of the request that wrote it", async (context) => {
  const fixture = await fixtureOf(context);
  const relay = await fixture.startRelayProcess();
  await forRequest("request-of-the-row", () => fixture.write(stationRow(1, 1)));
  const failures = (): object[] =>
    relay
      .logged()
      .split("\n")
      .filter((line) => line.includes("could not deliver"))
      .map((line) => JSON.parse(line) as object);
  await context.expect.poll(() => failures().length).toBeGreaterThan(0);
  expect(failures()[0]).toMatchObject({ requestId: "request-of-the-row", key: "station.1" });
});

const STATION_ID = 7;
const CREDENTIAL = sessionHash(99);
const switchRow = (isOn: boolean, revision: number): OutboxRow => ({
  key: switchKey(1),
  kind: "switch_set",
  entry: { key: switchKeyOf({ kind: "station", id: STATION_ID }), isOn, revision },
});
const credentialPut: OutboxRow = {
  key: stationKey(STATION_ID),
  kind: "credential_put",
  hash: CREDENTIAL,
  entry: { deviceId: 1, stationId: STATION_ID, scopes: [] },
};
const credentialDelete: OutboxRow = { key: credentialKey(1), kind: "credential_delete", hash: CREDENTIAL };
/** The newest message of each key in the buckets, the number of robotics events, and the station's revisions in the log. */
async function everything(fixture: RelayFixture) {
  const newest = async (bucket: BucketDefinition, key: string): Promise<string | undefined> => {
    const message = await fixture.newestOf(bucket, key);
    return message?.header.get("KV-Operation") || message?.string();
  };
  const { messages } = (await fixture.bus.jsm.streams.info(ROBOTICS_EVENTS.name)).state;
  const commits = await fixture.commits(STATION_ID);
  return {
    session: await newest(SESSIONS, sessionHash(1)),
    credential: await newest(CREDENTIALS, CREDENTIAL),
    switch: await newest(SWITCHES, switchKeyOf({ kind: "station", id: STATION_ID })),
    robotics: messages,
    revisions: commits.map(({ state }) => state.revision),
  };
}

describe.concurrent("a relay that was stalled while it delivered", () => {
  test("its writes arrive late: no newer bucket entry is replaced, and nothing is done twice", async (context) => {
    const fixture = await fixtureOf(context);
    await fixture.startStations();
    const proxy = await startFaultProxy(fixture.nats.url);
    const { url: databaseUrl } = fixture.database;
    const stalled = await fixture.startRelay({ by: { natsUrl: proxy.url, databaseUrl } });
    const subjects = [
      `$KV.${SESSIONS.name}.${sessionHash(1)}`,
      roboticsEventSubject(1),
      stationCommandSubject(STATION_ID),
    ];
    // The relay soon leaves a server that does not answer. Before that, it must have sent all of them.
    const resume = proxy.holdFromFirst(subjects);
    await fixture.writeTogether(
      sessionPut(1, 1),
      stationRow(STATION_ID, 1),
      credentialPut,
      switchRow(true, 1),
      roboticsRow(1, true),
    );
    // The relay has sent its writes, and the proxy holds all of them.
    const sent = () => subjects.filter((subject) => proxy.held().includes(subject));
    await context.expect.poll(sent).toEqual(subjects);
    expect(await everything(fixture)).toMatchObject({ session: undefined, robotics: 0, revisions: [] });

    const successor = await fixture.startRelay();
    await fixture.delivered();
    await fixture.write(sessionDelete(1, 1), credentialDelete, stationRow(STATION_ID, 2), switchRow(false, 2));
    await fixture.write(roboticsRow(1, false));
    await fixture.delivered();
    const before = await everything(fixture);
    expect(before).toEqual({ session: "DEL", credential: "DEL", switch: "DEL", robotics: 2, revisions: [1, 2] });

    const late = new Set<string>();
    const subscriptions = subjects.map((subject) =>
      fixture.bus.nc.subscribe(subject, { callback: (_error, message) => void late.add(message.subject) }),
    );
    await fixture.bus.nc.flush();
    resume();
    await context.expect.poll(() => late).toEqual(new Set(subjects));
    for (const subscription of subscriptions) subscription.unsubscribe();
    // This row comes after the late command, so the host has done the late command when this row is delivered.
    await fixture.write(stationRow(STATION_ID, 3));
    await fixture.delivered();
    expect(await everything(fixture)).toEqual({ ...before, revisions: [1, 2, 3] });
    await stalled.stop();
    await successor.stop();
    await proxy.stop();
  });
});

describe.concurrent("writes of a relay that has lost the lease", () => {
  const mark = (sequence: number): Mark => ({ stream: "KV_SESSIONS", created: "then", sequence, stored: "later" });
  const lapse = ({ sql }: RelayFixture) => sql`update relay_lease set lapses_at = clock_timestamp() - interval '1 ms'`;

  test("marks and announcements of an older epoch: refused", async (context) => {
    const fixture = await fixtureOf(context);
    const { sql } = fixture;
    const older = (await takeLease(sql, "older")) ?? 0;
    await noteMarks(sql, older, { moved: [mark(5)], lost: ["sessions"], ageMs: 0 });
    await lapse(fixture);
    const newer = (await takeLease(sql, "newer")) ?? 0;
    expect(newer).toBe(older + 1);
    await noteMarks(sql, newer, { moved: [mark(9)], lost: [], ageMs: 0 });
    const finished = { part: "sessions", through: 100, isFinished: true } as const;
    await expect(noteMarks(sql, older, { moved: [mark(6)], lost: [], ageMs: 0 })).rejects.toBeInstanceOf(
      LeaseLostError,
    );
    await expect(noteAnnounced(sql, older, finished)).rejects.toBeInstanceOf(LeaseLostError);
    expect((await selectMarks(sql)).get("KV_SESSIONS")?.sequence).toBe(9);
    expect(await selectPendingAnnouncements(sql)).toEqual([{ part: "sessions", through: 0 }]);
    expect(await renewLease(sql, older)).toBe(false);
    await noteAnnounced(sql, newer, finished);
    expect(await selectPendingAnnouncements(sql)).toEqual([]);
  });

  test("a completeness notice after another relay's notice: not stored", async (context) => {
    const fixture = await fixtureOf(context);
    const seen = await readNoticeSequences(fixture.bus, SESSIONS);
    const other = await noteComplete(fixture.bus, SESSIONS, { serverId: "newer" });
    expect(await noteComplete(fixture.bus, SESSIONS, { serverId: "older" }, seen)).toBeUndefined();
    expect(await readNoticeSequences(fixture.bus, SESSIONS)).toEqual(other);
  });

  test("the lease: acquired when it is released, has lapsed or the clock was set back, without a wait", async (context) => {
    const fixture = await fixtureOf(context);
    const { sql } = fixture;
    const first = (await takeLease(sql, "first")) ?? 0;
    expect(await takeLease(sql, "second")).toBeUndefined();
    await releaseLease(sql, first);
    expect(await takeLease(sql, "second")).toBe(first + 1);
    await sql`update relay_lease set lapses_at = clock_timestamp() + interval '1 hour'`;
    expect(await takeLease(sql, "third")).toBe(first + 2);
    await lapse(fixture);
    await sql.begin(async (tx) => {
      await tx`select from relay_lease for share`;
      // The transaction holds the lock until this has returned, so waiting for the lock would fail.
      expect(await takeLease(sql, "fourth")).toBeUndefined();
    });
    expect(await takeLease(sql, "fourth")).toBe(first + 3);
  });
});

/** This group does not run concurrently, because it measures a second. */
describe("stations without a host", () => {
  test("only their rows wait, with one log line; other rows are delivered within a second", async (context) => {
    const fixture = await fixtureOf(context);
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
    const metrics = new Registry();
    await fixture.startRelay({ log, metrics });
    const failed = /relay_deliveries_total\{kind="station_command",result="failed"\} (\d+)/;
    const failures = async (): Promise<number> => Number(failed.exec(await metrics.metrics())?.[1]);
    // These are more stations than the relay sends commands to at once, some with several changes.
    for (let stationId = 1; stationId <= 100; stationId += 1) await fixture.write(stationRow(stationId, 1));
    const revisions = [1, 2, 3, 4, 5, 6];
    for (const revision of revisions.slice(1)) {
      for (const stationId of STATIONS) await fixture.write(stationRow(stationId, revision));
    }
    await expect.poll(failures).toBeGreaterThanOrEqual(RELAY_LIMITS.stationKeysAtOnce);
    await fixture.write(sessionPut(1, 1));
    const startedAtMs = Date.now();
    expect(await fixture.flush(sessionKey(1))).toMatchObject({ positions: { KV_SESSIONS: expect.any(Number) } });
    expect(Date.now() - startedAtMs).toBeLessThan(1_000);
    expect((await refusalOf(fixture.flush(stationKey(1)))).code).toBe("unavailable");
    expect(await fixture.outstanding()).toBe(100 + 5 * STATIONS.length);
    // One line about all stations and attempts.
    expect(lines.filter((line) => line.includes("could not deliver"))).toEqual([
      expect.stringContaining(`"reason":"No answer came from the station's actor in time."`),
    ]);

    await fixture.startStations();
    await fixture.delivered(30_000);
    expect(await fixture.commits(100)).toHaveLength(1);
    for (const stationId of STATIONS) {
      const commits = await fixture.commits(stationId);
      expect(commits.map((commit) => commit.state.revision)).toEqual(revisions);
    }
  });
});

/** This group does not run concurrently, because it changes the clock of the process. */
describe("a relay whose machine's clock is set back by an hour", () => {
  test("a row waits for its next attempt: it is delivered without a delay of an hour", async (context) => {
    const fixture = await fixtureOf(context);
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
    await fixture.startRelay({ log });
    await fixture.write(stationRow(1, 1));
    await expect.poll(() => lines.filter((line) => line.includes("could not deliver")).length).toBeGreaterThan(0);
    const realNow = Date.now.bind(Date);
    vi.spyOn(Date, "now").mockImplementation(() => realNow() - 3_600_000);
    context.onTestFinished(() => void vi.restoreAllMocks());
    await fixture.startStations();
    await fixture.delivered(10_000);
    expect(await fixture.commits(1)).toHaveLength(1);
  });
});
