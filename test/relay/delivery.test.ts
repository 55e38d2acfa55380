/** How outbox rows reach stations, buckets and the stream of robotics events. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { publishedIssueEventSchema } from "../../services/bus/messages/issues.ts";
import {
  type PublishedRoboticsEvent,
  publishedRoboticsEventSchema,
} from "../../services/bus/messages/robotics-events.ts";
import { CREDENTIALS, ISSUE_EVENTS, ROBOTICS_EVENTS } from "../../services/bus/streams.ts";
import { issueEventSubject, roboticsEventSubject } from "../../services/bus/subjects.ts";
import { credentialKey, type OutboxRow, organizationKey, sessionKey, stationKey } from "../../services/db/outbox.ts";
import { deleteEntry, putOnce } from "../../services/relay/buckets.ts";
import { publishIssueEvent, publishRoboticsEvent } from "../../services/relay/delivery.ts";
import { RELAY_LIMITS } from "../../services/relay/limits.ts";
import {
  deviceRow,
  type RelayFixture,
  roboticsRow,
  sessionHash,
  sessionPut,
  startRelayFixture,
  stationRow,
} from "./relay-fixture.ts";

const credentialEntry = { deviceId: 1, stationId: 1, scopes: ["device:read"] };
const hash = (letter: string): string => letter.repeat(64);

describe("the relay", () => {
  let fixture: RelayFixture;
  beforeAll(async () => {
    fixture = await startRelayFixture();
    await fixture.startStations();
    await fixture.startRelay();
  });
  afterAll(() => fixture.stop());

  async function credential(key: string) {
    const message = await fixture.newestOf(CREDENTIALS, key);
    if (message === null) throw new Error(`${key} has no message.`);
    return { sequence: message.seq, operation: message.header.get("KV-Operation"), text: message.string() };
  }

  test("many keys at once: the rows of each key are delivered in their order", async () => {
    const stations = Array.from({ length: 20 }, (_, index) => 100 + index);
    const revisions = Array.from({ length: 15 }, (_, index) => index + 1);
    for (const revision of revisions) {
      await Promise.all(stations.map((stationId) => fixture.write(stationRow(stationId, revision))));
    }
    await fixture.delivered();
    for (const stationId of stations) {
      const commits = await fixture.commits(stationId);
      expect(commits.map((commit) => commit.state.revision)).toEqual(revisions);
      const ids = commits.map((commit) => Number(commit.commandId.replace("outbox:", "")));
      expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    }
  });

  test("a row without a flush: delivered within four poll intervals", async () => {
    await fixture.write(sessionPut(1, 1));
    await fixture.delivered();
    const [row] = await fixture.sql<{ took_ms: number }[]>`
      select extract(epoch from delivered_at - created_at)::float8 * 1000 as took_ms from outbox where key = ${sessionKey(1)}`;
    expect(row?.took_ms).toBeLessThan(4 * RELAY_LIMITS.pollIntervalMs);
    expect(await fixture.session(sessionHash(1))).toBe("put");
  });

  test("a flush: returns the positions that replicas must reach, also for rows that were delivered before", async () => {
    await fixture.write(stationRow(200, 1), {
      key: stationKey(200),
      kind: "credential_put",
      hash: hash("a"),
      entry: credentialEntry,
    });
    const barrier = await fixture.flush(stationKey(200));
    const [commit] = await fixture.commits(200);
    const entry = await credential(hash("a"));
    expect(JSON.parse(entry.text)).toEqual(credentialEntry);
    expect(barrier).toEqual({ positions: { STATION_LOG_0: commit?.sequence, KV_CREDENTIALS: entry.sequence } });
    expect(await fixture.flush(stationKey(200))).toEqual(barrier);
    expect(await fixture.flush(stationKey(999))).toEqual({ positions: {} });
  });

  test("a flush: has the position of a row that was delivered after the newer description of its station", async () => {
    const key = stationKey(210);
    await fixture.writeTogether(deviceRow(210, { deviceId: 1, revision: 1 }), stationRow(210, 1));
    await fixture.flush(key);
    await fixture.sql`
      update outbox set delivered_at = delivered_at - interval '10 seconds'
      where key = ${key} and payload #>> '{command,type}' = 'station_put'`;
    const [, device] = await fixture.commits(210);
    expect(await fixture.flush(key)).toEqual({ positions: { STATION_LOG_0: device?.sequence } });
  });

  test("a flush: has the position of each stream, also when many rows of another stream have followed", async () => {
    const put = { kind: "credential_put", hash: hash("e"), entry: credentialEntry } as const;
    const later = Array.from({ length: 40 }, (_, index) => stationRow(201, 2 + index));
    await fixture.write(stationRow(201, 1), { key: stationKey(201), ...put }, ...later);
    await fixture.delivered();
    // All rows get the same delivery time, also on a busy machine.
    await fixture.sql`update outbox set delivered_at = now() where key = ${stationKey(201)}`;
    const { positions } = await fixture.flush(stationKey(201));
    const entry = await credential(hash("e"));
    const newest = (await fixture.commits(201)).at(-1);
    expect(positions).toEqual({ STATION_LOG_0: newest?.sequence, KV_CREDENTIALS: entry.sequence });
  });

  test("many flushes of one key at once: each is answered when its row is delivered", async () => {
    const numbers = Array.from({ length: 40 }, (_, index) => 1_000 + index);
    await Promise.all(
      numbers.map(async (number) => {
        await fixture.write(sessionPut(7, number));
        await fixture.flush(sessionKey(7));
        expect(await fixture.session(sessionHash(number))).toBe("put");
      }),
    );
  });

  test("an older revision of an order: not delivered, because the station may have forgotten the order", async () => {
    const [{ station_id: stationId, orders }] = await fixture.sql<[{ station_id: number; orders: [number, number] }]>`
      with o as (insert into organizations (name) values ('Organization') returning organization_id),
        f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o returning filial_id, organization_id),
        s as (insert into stations (organization_id, filial_id, name, currency)
          select organization_id, filial_id, 'Counter', 'EUR' from f returning station_id, organization_id),
        paid as (insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by, status, revision)
          select organization_id, station_id, 1, 'EUR', 250, 1, 'paid', 2 from s returning order_id),
        open as (insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
          select organization_id, station_id, 2, 'EUR', 250, 1 from s returning order_id)
      select station_id, array[paid.order_id, open.order_id] as orders from s, paid, open`;
    const put = (nth: 0 | 1): OutboxRow => ({
      key: stationKey(stationId),
      kind: "station_command",
      stationId,
      actor: { kind: "cashier", id: 1, name: "Ada" },
      command: {
        type: "order_put",
        order: {
          orderId: orders[nth],
          orderDisplayNumber: nth + 1,
          amountMinor: "250",
          currency: "EUR",
          status: "open",
          revision: 1,
        },
      },
    });
    await fixture.write(stationRow(stationId, 1), put(0), put(1));
    const barrier = await fixture.flush(stationKey(stationId));
    const commits = await fixture.commits(stationId);
    expect(commits.flatMap(({ state }) => state.order?.orderId ?? [])).toEqual([orders[1]]);
    expect(barrier).toEqual({ positions: { STATION_LOG_0: commits.at(-1)?.sequence } });
    await fixture.delivered();
  });

  test("a row that its station refuses finally: its reason is stored, and the rows after it are delivered", async () => {
    const stationId = 300;
    await fixture.write(
      // This name is longer than a host accepts.
      deviceRow(stationId, { deviceId: 1, revision: 1, name: "D".repeat(1_001) }),
      deviceRow(stationId, { deviceId: 2, revision: 1 }),
      stationRow(stationId, 1),
    );
    const barrier = await fixture.flush(stationKey(stationId));
    expect(barrier, "a change that its station has refused is not effective").toMatchObject({ isUndelivered: true });
    const rows = await fixture.sql`
      select failed_reason, sequence is null as unstored, delivered_at is null as outstanding from outbox
      where key = ${stationKey(stationId)} order by outbox_id`;
    expect(rows).toEqual([
      { failed_reason: "invalid_request", unstored: true, outstanding: false },
      { failed_reason: null, unstored: false, outstanding: false },
      { failed_reason: null, unstored: false, outstanding: false },
    ]);
    expect(await fixture.commits(stationId)).toHaveLength(2);
  });

  test("a row for a station that the bus does not have: waits for the station, and is refused where none is announced", async () => {
    const announced = (isFinished: boolean) => fixture.sql`
      insert into bus_announcements (part, finished_at) values ('stations', ${isFinished ? new Date() : null})
      on conflict (part) do update set finished_at = excluded.finished_at`;
    await announced(false);
    await fixture.write(deviceRow(301, { deviceId: 1, revision: 1 }));
    await expect(fixture.flush(stationKey(301))).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    await fixture.write(stationRow(301, 1));
    await fixture.flush(stationKey(301));
    expect((await fixture.commits(301)).at(-1)?.state.devices).toMatchObject([{ deviceId: 1 }]);

    await announced(true);
    await fixture.write(deviceRow(302, { deviceId: 1, revision: 1 }));
    expect(await fixture.flush(stationKey(302))).toMatchObject({ isUndelivered: true });
    expect(await fixture.sql`select failed_reason from outbox where key = ${stationKey(302)}`).toEqual([
      { failed_reason: "station_unknown" },
    ]);
  });

  test("a credential's deletion is delivered before its entry: the credential stays deleted", async () => {
    // The deletion has another key, so that it never waits for a station's actor.
    await fixture.write({ key: credentialKey(9), kind: "credential_delete", hash: hash("b") });
    const { positions } = await fixture.flush(credentialKey(9));
    await fixture.write({ key: stationKey(400), kind: "credential_put", hash: hash("b"), entry: credentialEntry });
    await fixture.flush(stationKey(400));
    expect(await credential(hash("b"))).toMatchObject({ operation: "DEL", sequence: positions["KV_CREDENTIALS"] });
  });

  test("an entry of a bucket that is put again: nothing changes, and after its deletion it stays deleted", async () => {
    const deps = fixture.bus;
    const first = await putOnce(deps, CREDENTIALS, hash("c"), credentialEntry);
    expect(await putOnce(deps, CREDENTIALS, hash("c"), credentialEntry)).toBe(first);
    const deleted = await deleteEntry(deps, CREDENTIALS, hash("c"));
    expect(await putOnce(deps, CREDENTIALS, hash("c"), credentialEntry)).toBe(deleted);
    expect((await credential(hash("c"))).operation).toBe("DEL");
  });
});

describe("robotics events", () => {
  let fixture: RelayFixture;
  beforeEach(async () => {
    fixture = await startRelayFixture();
  });
  afterEach(() => fixture.stop());

  async function stored(): Promise<(PublishedRoboticsEvent & { readonly subject: string })[]> {
    const { state } = await fixture.bus.jsm.streams.info(ROBOTICS_EVENTS.name);
    const found = [];
    for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq += 1) {
      const message = await fixture.bus.jsm.streams.getMessage(ROBOTICS_EVENTS.name, { seq });
      if (message === null) throw new Error(`The stream has no message ${seq}.`);
      found.push({ ...publishedRoboticsEventSchema.parse(message.json()), subject: message.subject });
    }
    return found;
  }

  test("rows of two filials: published to the filial's subject with the row's id, for each filial in their order", async () => {
    const rows = [true, false, true, false].flatMap((isPaused) => [roboticsRow(7, isPaused), roboticsRow(8, isPaused)]);
    await fixture.write(...rows);
    await fixture.startRelay();
    await fixture.delivered();
    const events = await stored();
    expect(events).toHaveLength(8);
    for (const filialId of [7, 8]) {
      const own = events.filter(({ event }) => event.filialId === filialId);
      expect(own.map(({ event }) => event.eventType)).toEqual([
        "robotics.paused",
        "robotics.resumed",
        "robotics.paused",
        "robotics.resumed",
      ]);
      expect(own.map(({ eventId }) => eventId)).toEqual(own.map(({ eventId }) => eventId).toSorted((a, b) => a - b));
      expect(new Set(own.map(({ subject }) => subject))).toEqual(new Set([roboticsEventSubject(filialId)]));
    }
    const ids = await fixture.sql<{ outbox_id: number }[]>`
      select outbox_id from outbox where kind = 'robotics_event' order by outbox_id`;
    const published = events.map(({ eventId }) => eventId).toSorted((a, b) => a - b);
    expect(published).toEqual(ids.map((row) => row.outbox_id));
  });

  test("published again after a lost answer: stored once", async () => {
    const row = { ...roboticsRow(7, true), outboxId: 41 };
    const first = await publishRoboticsEvent(fixture.bus, row);
    expect(await publishRoboticsEvent(fixture.bus, row)).toBe(first);
    expect(await publishRoboticsEvent(fixture.bus, { ...row, outboxId: 42 })).toBe(first + 1);
    expect((await stored()).map(({ eventId }) => eventId)).toEqual([41, 42]);
  });

  test("written while no relay runs: published when a relay runs", async () => {
    await fixture.write(roboticsRow(7, true));
    expect(await stored()).toEqual([]);
    const relay = await fixture.startRelayProcess();
    await fixture.delivered();
    await relay.kill9();
    await fixture.write(roboticsRow(7, false));
    await fixture.startRelay();
    await fixture.delivered();
    expect((await stored()).map(({ event }) => event.eventType)).toEqual(["robotics.paused", "robotics.resumed"]);
  });
});

describe("events of issues", () => {
  let fixture: RelayFixture;
  beforeEach(async () => {
    fixture = await startRelayFixture();
  });
  afterEach(() => fixture.stop());

  const row = (organizationId: number, issueId: number) => ({
    key: organizationKey(organizationId),
    kind: "issue_event" as const,
    event: {
      type: "issues_opened" as const,
      organizationId,
      issues: [
        {
          issueId,
          kind: "unmatched_money" as const,
          status: "open" as const,
          accountKey: "statement:1",
          stationId: null,
          supersedesId: null,
        },
      ],
    },
  });
  async function stored() {
    const { state } = await fixture.bus.jsm.streams.info(ISSUE_EVENTS.name);
    const found = [];
    for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq += 1) {
      const message = await fixture.bus.jsm.streams.getMessage(ISSUE_EVENTS.name, { seq });
      if (message === null) throw new Error(`The stream has no message ${seq}.`);
      found.push({ ...publishedIssueEventSchema.parse(message.json()), subject: message.subject });
    }
    return found;
  }

  test("a relay is killed between two rows: each is published with its row's id, for an organization in order", async () => {
    await fixture.write(row(7, 1), row(8, 2), row(7, 3));
    const relay = await fixture.startRelayProcess();
    await fixture.delivered();
    await relay.kill9();
    await fixture.write(row(7, 4));
    await fixture.startRelay();
    await fixture.delivered();
    const events = await stored();
    const own = events.filter(({ subject }) => subject === issueEventSubject(7));
    expect(own.map(({ event }) => event.issues[0]?.issueId)).toEqual([1, 3, 4]);
    const ids = await fixture.sql<{ outbox_id: number }[]>`
      select outbox_id from outbox where kind = 'issue_event' order by outbox_id`;
    expect(events.map(({ eventId }) => eventId).toSorted((a, b) => a - b)).toEqual(ids.map((each) => each.outbox_id));
  });

  test("published again after a lost answer: stored once", async () => {
    const pending = { ...row(7, 1), outboxId: 41 };
    const first = await publishIssueEvent(fixture.bus, pending);
    expect(await publishIssueEvent(fixture.bus, pending)).toBe(first);
    expect(await publishIssueEvent(fixture.bus, { ...pending, outboxId: 42 })).toBe(first + 1);
    expect((await stored()).map(({ eventId }) => eventId)).toEqual([41, 42]);
  });
});
