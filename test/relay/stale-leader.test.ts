/** What a relay whose lease has lapsed can still write: nothing that is older than what stands. */
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { switchKeyOf } from "../../services/bus/messages/kill-switches.ts";
import { CREDENTIALS, ROBOTICS_EVENTS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { credentialKey, filialKey, type OutboxRow, stationKey, switchKey } from "../../services/db/outbox.ts";
import { noteComplete, readNoticeSequences } from "../../services/relay/buckets.ts";
import {
  type Mark,
  noteAnnounced,
  noteMarks,
  selectMarks,
  selectPendingAnnouncements,
} from "../../services/relay/sql/bus-state.ts";
import { LeaseLostError, releaseLease, renewLease, takeLease } from "../../services/relay/sql/leader-lease.ts";
import { startFaultProxy } from "../stations/fault-proxy.ts";
import {
  type RelayFixture,
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
const robotics = (isPaused: boolean): OutboxRow => ({
  key: filialKey(1),
  kind: "robotics_event",
  event: {
    organizationId: 1,
    filialId: 1,
    consumerId: null,
    createdAt: "2026-11-20T12:00:00.000Z",
    eventType: isPaused ? "robotics.paused" : "robotics.resumed",
    payload: { filial_id: 1 },
  },
});

/** The newest message of each subject of the buckets, and all of the events and of the station's log. */
async function everything(): Promise<unknown> {
  const { jsm } = fixture.bus;
  const newest = async (bucket: string, key: string): Promise<string | undefined> => {
    const message = await jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj: `$KV.${bucket}.${key}` });
    return message?.header.get("KV-Operation") || message?.string();
  };
  const { messages } = (await jsm.streams.info(ROBOTICS_EVENTS.name)).state;
  const commits = await fixture.commits(STATION_ID);
  return {
    session: await newest(SESSIONS.name, sessionHash(1)),
    credential: await newest(CREDENTIALS.name, CREDENTIAL),
    switch: await newest(SWITCHES.name, switchKeyOf({ kind: "station", id: STATION_ID })),
    robotics: messages,
    revisions: commits.map(({ state }) => state.revision),
  };
}

describe("a relay that was stalled while it delivered", () => {
  test("sends late what it had sent: no bucket goes back, nothing is done twice", async () => {
    await fixture.startStations();
    const proxy = await startFaultProxy(fixture.nats.url);
    const { url: databaseUrl } = fixture.database;
    const stalled = await fixture.startRelay({ natsUrl: proxy.url, databaseUrl });
    const resume = proxy.holdToServer();
    await fixture.write(sessionPut(1, 1), stationRow(STATION_ID, 1), credentialPut, switchRow(true, 1), robotics(true));
    // It has read these rows and sent what it could; nothing of it has arrived.
    await delay(600);
    expect(await everything()).toMatchObject({ session: undefined, robotics: 0, revisions: [] });

    const successor = await fixture.startRelay();
    await fixture.delivered();
    await fixture.write(sessionDelete(1, 1), credentialDelete, stationRow(STATION_ID, 2), switchRow(false, 2));
    await fixture.write(robotics(false));
    await fixture.delivered();
    const before = await everything();
    expect(before).toEqual({ session: "DEL", credential: "DEL", switch: "DEL", robotics: 2, revisions: [1, 2] });

    const late: string[] = [];
    const overheard = ["$KV.*.*", "robotics.>", "station.cmd.>"].map((subject) =>
      fixture.bus.nc.subscribe(subject, { callback: (_error, message) => void late.push(message.subject) }),
    );
    await fixture.bus.nc.flush();
    resume();
    await expect.poll(() => late, { timeout: 15_000 }).toContain(`$KV.${SESSIONS.name}.${sessionHash(1)}`);
    await delay(500);
    expect(late.filter((subject) => !subject.startsWith("$KV.")).length).toBeGreaterThan(0);
    expect(await everything()).toEqual(before);
    for (const subscription of overheard) subscription.unsubscribe();
    await stalled.stop();
    await successor.stop();
    await proxy.stop();
  });
});

describe("what only the relay with the lease may write", () => {
  const mark = (sequence: number): Mark => ({ stream: "KV_SESSIONS", created: "then", sequence, stored: "later" });
  const lapse = () => fixture.sql`update relay_lease set lapses_at = clock_timestamp() - interval '1 ms'`;

  test("marks and announcements: an older epoch writes nothing over a newer one", async () => {
    const { sql } = fixture;
    const older = (await takeLease(sql, "older")) ?? 0;
    await noteMarks(sql, older, { moved: [mark(5)], lost: ["sessions"] });
    await lapse();
    const newer = (await takeLease(sql, "newer")) ?? 0;
    expect(newer).toBe(older + 1);
    await noteMarks(sql, newer, { moved: [mark(9)], lost: [] });
    const finished = { part: "sessions", through: 100, isFinished: true } as const;
    await expect(noteMarks(sql, older, { moved: [mark(6)], lost: [] })).rejects.toBeInstanceOf(LeaseLostError);
    await expect(noteAnnounced(sql, older, finished)).rejects.toBeInstanceOf(LeaseLostError);
    expect((await selectMarks(sql)).get("KV_SESSIONS")?.sequence).toBe(9);
    expect(await selectPendingAnnouncements(sql)).toEqual([{ part: "sessions", through: 0 }]);
    expect(await renewLease(sql, older)).toBe(false);
    await noteAnnounced(sql, newer, finished);
    expect(await selectPendingAnnouncements(sql)).toEqual([]);
  });

  test("the note that a bucket is complete: one that comes after another relay's is not stored", async () => {
    const seen = await readNoticeSequences(fixture.bus, SESSIONS);
    const other = await noteComplete(fixture.bus, SESSIONS, { serverId: "newer" });
    expect(await noteComplete(fixture.bus, SESSIONS, { serverId: "older" }, seen)).toBeUndefined();
    expect(await readNoticeSequences(fixture.bus, SESSIONS)).toEqual(other);
  });

  test("the lease: it is taken when it has lapsed or the clock was set back, and never waited for", async () => {
    const { sql } = fixture;
    const first = (await takeLease(sql, "first")) ?? 0;
    expect(await takeLease(sql, "second")).toBeUndefined();
    await releaseLease(sql, first);
    expect(await takeLease(sql, "second")).toBe(first + 1);
    await sql`update relay_lease set lapses_at = clock_timestamp() + interval '1 hour'`;
    expect(await takeLease(sql, "third")).toBe(first + 2);
    await lapse();
    await sql.begin(async (tx) => {
      await tx`select from relay_lease for share`;
      const startedAtMs = performance.now();
      expect(await takeLease(sql, "fourth")).toBeUndefined();
      expect(performance.now() - startedAtMs).toBeLessThan(500);
    });
    expect(await takeLease(sql, "fourth")).toBe(first + 3);
  });
});
