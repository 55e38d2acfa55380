/**
 * What happens to outbox rows when a relay, the bus, the database or the actor hosts fail, and when a relay is stalled. In the
 * short form a relay and the bus are killed twice while twenty rounds are written, in the long form of `npm run soak` six
 * times in sixty (RELAY_ROUNDS).
 */
import { pino } from "pino";
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

/** Most tests run at the same time, so each has its own fixture. */
async function fixtureOf({ onTestFinished }: TestContext): Promise<RelayFixture> {
  const fixture = await startRelayFixture();
  onTestFinished(() => fixture.stop());
  return fixture;
}

const STATIONS = Array.from({ length: 8 }, (_, index) => 1 + index);
const USERS = Array.from({ length: 4 }, (_, index) => 1 + index);
const ROUNDS = Number(process.env["RELAY_ROUNDS"] ?? 20);
const tokenOf = (userId: number, round: number): number => userId * 1_000 + round;

/** A change of each station; of each user a session, every other one ended at once. */
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

/** Everything arrived, in order, and had its effect once. */
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

describe.concurrent("a relay that is killed again and again", () => {
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
    // Otherwise nothing was interrupted, and the test proves nothing.
    expect(Math.max(...outstanding)).toBeGreaterThan(0);
    await fixture.delivered();
    await expectAllDelivered(fixture);
  });
});

describe.concurrent("two relays", () => {
  test("one delivers and the other stands by, and takes over when the first is killed", async (context) => {
    const fixture = await fixtureOf(context);
    const first = await fixture.startRelayProcess();
    // When it is ready, it has taken the lease, so the second relay cannot take it.
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
    // It answers flushes now, and releases the lease when it is stopped.
    expect(await fixture.flush(sessionKey(1))).toMatchObject({ positions: { KV_SESSIONS: expect.any(Number) } });
    await second.stop();
    expect(await leases()).toEqual([]);
  });
});

describe.concurrent("a relay whose connection to PostgreSQL is cut", () => {
  test("it is elected again and goes on", async (context) => {
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
  test("everything is delivered in order after its restart", async (context) => {
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

test.concurrent("a row that cannot be delivered: the log line has the id of the request that wrote it", async (context) => {
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
/** The newest message of each subject of the buckets, and all of the events and of the station's log. */
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
  test("its writes arrive late: no bucket entry gets older, and nothing is done twice", async (context) => {
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
    // Soon the relay leaves a server that does not answer; until then it must have sent all of them.
    const resume = proxy.holdFromFirst(subjects);
    await fixture.writeTogether(
      sessionPut(1, 1),
      stationRow(STATION_ID, 1),
      credentialPut,
      switchRow(true, 1),
      roboticsRow(1, true),
    );
    // It has sent what it could; nothing of it has arrived.
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
    // Sent after the late command, so that the host has done that one.
    await fixture.write(stationRow(STATION_ID, 3));
    await fixture.delivered();
    expect(await everything(fixture)).toEqual({ ...before, revisions: [1, 2, 3] });
    await stalled.stop();
    await successor.stop();
    await proxy.stop();
  });
});

describe.concurrent("what only the relay with the lease may write", () => {
  const mark = (sequence: number): Mark => ({ stream: "KV_SESSIONS", created: "then", sequence, stored: "later" });
  const lapse = ({ sql }: RelayFixture) => sql`update relay_lease set lapses_at = clock_timestamp() - interval '1 ms'`;

  test("marks and announcements: an older epoch writes nothing over a newer one", async (context) => {
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

  test("the completeness notice: one that comes after another relay's is not stored", async (context) => {
    const fixture = await fixtureOf(context);
    const seen = await readNoticeSequences(fixture.bus, SESSIONS);
    const other = await noteComplete(fixture.bus, SESSIONS, { serverId: "newer" });
    expect(await noteComplete(fixture.bus, SESSIONS, { serverId: "older" }, seen)).toBeUndefined();
    expect(await readNoticeSequences(fixture.bus, SESSIONS)).toEqual(other);
  });

  test("the lease: it is taken when it has lapsed or the clock was set back, and never waited for", async (context) => {
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
      // The lock is held until this has returned: a take that waited for it would fail.
      expect(await takeLease(sql, "fourth")).toBeUndefined();
    });
    expect(await takeLease(sql, "fourth")).toBe(first + 3);
  });
});

/** Alone, because it measures a second. */
describe("stations without a host", () => {
  test("only their own rows wait", async (context) => {
    const fixture = await fixtureOf(context);
    let failures = 0;
    const log = pino({ level: "warn" }, { write: () => void (failures += 1) });
    await fixture.startRelay({ log });
    // More stations than the relay sends commands to at once, and several changes of some of them.
    for (let stationId = 1; stationId <= 100; stationId += 1) await fixture.write(stationRow(stationId, 1));
    const revisions = [1, 2, 3, 4, 5, 6];
    for (const revision of revisions.slice(1)) {
      for (const stationId of STATIONS) await fixture.write(stationRow(stationId, revision));
    }
    await expect.poll(() => failures).toBeGreaterThanOrEqual(RELAY_LIMITS.stationKeysAtOnce);
    await fixture.write(sessionPut(1, 1));
    const startedAtMs = Date.now();
    expect(await fixture.flush(sessionKey(1))).toMatchObject({ positions: { KV_SESSIONS: expect.any(Number) } });
    expect(Date.now() - startedAtMs).toBeLessThan(1_000);
    expect((await refusalOf(fixture.flush(stationKey(1)))).code).toBe("unavailable");
    expect(await fixture.outstanding()).toBe(100 + 5 * STATIONS.length);

    await fixture.startStations();
    await fixture.delivered(30_000);
    expect(await fixture.commits(100)).toHaveLength(1);
    for (const stationId of STATIONS) {
      const commits = await fixture.commits(stationId);
      expect(commits.map((commit) => commit.state.revision)).toEqual(revisions);
    }
  });
});

/** Alone, because it changes the clock of the process. */
describe("a relay whose machine's clock is set back by an hour", () => {
  test("a row that waits for its next attempt is delivered without a delay of an hour", async (context) => {
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
