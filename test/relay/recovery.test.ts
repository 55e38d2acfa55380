/** How the relay detects that the bus has lost its newest data, and how it restores the data. */
import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { beatHeaders, beatSubject, bucketBeats } from "../../services/bus/beats.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import type { StationRequest } from "../../services/bus/messages/station-commands.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { CREDENTIALS, SESSIONS } from "../../services/bus/streams.ts";
import { sessionKey, stationKey } from "../../services/db/outbox.ts";
import { deleteEntry, noteComplete, putOnce, removeMarker } from "../../services/relay/buckets.ts";
import { checkStream, hasLost, markOf, streamInfo } from "../../services/relay/recovery/check-streams.ts";
import type { Mark, Noted } from "../../services/relay/sql/bus-state.ts";
import { comeBackWith, copyData } from "../support/nats-data.ts";
import { ONE_LOG, STATION_LOG, stationConfirmSubject } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import {
  deviceRow,
  type RelayFixture,
  sessionHash,
  sessionPut,
  startRelayFixture,
  stationRow,
} from "./relay-fixture.ts";

const STREAM = `KV_${SESSIONS.name}`;
let fixture: RelayFixture;
beforeEach(async () => {
  fixture = await startRelayFixture();
});
afterEach(() => fixture.stop());

const put = (number: number) => putOnce(fixture.bus, SESSIONS, sessionHash(number), { number });

async function hasLostData(mark: Mark | undefined, noted?: Noted): Promise<boolean> {
  return await hasLost(fixture.bus.jsm, await infoNow(), { mark, noted, logs: ONE_LOG });
}

async function infoNow(): Promise<StreamInfo> {
  const info = await streamInfo(fixture.bus.jsm, STREAM);
  if (info === undefined) throw new Error("There is no stream.");
  return info;
}

const markNow = async (): Promise<Mark> => markOf(await infoNow());

describe("a stream with a mark", () => {
  test("it still has its newest message: no loss, also after a kill of the server and new messages", async () => {
    for (const number of [1, 2, 3]) await put(number);
    const mark = await markNow();
    expect(await hasLostData(mark)).toBe(false);
    await fixture.nats.kill9();
    await fixture.nats.restart();
    await fixture.isBack();
    expect(await hasLostData(mark)).toBe(false);
    await put(4);
    expect(await hasLostData(mark)).toBe(false);
  });

  test("it is a log with many confirmations of hosts: no loss", async () => {
    const { js, jsm } = fixture.bus;
    const lost = async (mark: Mark): Promise<boolean> =>
      await hasLost(jsm, await jsm.streams.info(STATION_LOG.name), { mark, noted: undefined, logs: ONE_LOG });
    const marks: Mark[] = [];
    for (let count = 0; count < 2 * STATION_LOG.maxMessagesPerSubject; count += 1) {
      await js.publish(stationConfirmSubject(), "");
      if (count % 10 === 0) marks.push(markOf(await jsm.streams.info(STATION_LOG.name)));
    }
    for (const mark of marks) expect(await lost(mark)).toBe(false);
  });

  test("it has lost its end: a loss, also when the stream is as long as before again, or longer", async () => {
    await put(1);
    const copy = copyData(fixture.nats);
    for (const number of [2, 3]) await put(number);
    const mark = await markNow();
    await comeBackWith(fixture.nats, copy);
    await fixture.isBack();
    expect(await hasLostData(mark)).toBe(true);
    for (const number of [4, 5]) await put(number);
    expect((await markNow()).sequence).toBe(mark.sequence);
    expect(await hasLostData(mark)).toBe(true);
    await put(6);
    expect(await hasLostData(mark)).toBe(true);
  });

  test("it has lost its end, and readers' beats used the numbers again: a loss, by the row that was delivered", async () => {
    await put(1);
    const mark = await markNow();
    const copy = copyData(fixture.nats);
    for (const number of [2, 3]) await put(number);
    const noted = { sequence: (await markNow()).sequence };
    const delivered = { row: sessionPut(1, 3), sequence: noted.sequence };
    expect(await hasLostData(mark, { ...noted, delivered })).toBe(false);
    await comeBackWith(fixture.nats, copy);
    await fixture.isBack();
    const first = await infoNow();
    while ((await markNow()).sequence < noted.sequence) {
      await fixture.bus.js.publish(beatSubject(bucketBeats(SESSIONS)), "", { headers: beatHeaders("") });
    }
    expect(await hasLostData(mark, noted), "by its number alone").toBe(false);
    expect(await hasLostData(mark, { ...noted, delivered })).toBe(true);
    const { isLost } = await checkStream(fixture.bus.jsm, first, { mark, noted, logs: ONE_LOG });
    expect(isLost).toBe(true);
  });

  test("it was created again, or lacks a sequence that PostgreSQL has: a loss; without a mark: no loss", async () => {
    await put(1);
    expect(await hasLostData(undefined)).toBe(false);
    expect(await hasLostData(await markNow(), { sequence: 2 })).toBe(true);
    const mark = await markNow();
    await fixture.bus.jsm.streams.delete(STREAM);
    await ensureStreams(fixture.bus, { replicas: 1, logs: 1 });
    await put(1);
    expect(await hasLostData(mark)).toBe(true);
  });

  test("its newest message is a completeness notice, and the relay repeats the notice: no loss", async () => {
    await put(1);
    await noteComplete(fixture.bus, SESSIONS, { serverId: "one run of the server" });
    const mark = await markNow();
    await noteComplete(fixture.bus, SESSIONS, { serverId: "another run of the server" });
    expect((await markNow()).sequence).toBeGreaterThan(mark.sequence);
    expect(await hasLostData(mark)).toBe(false);
  });

  test("its marked message was replaced or removed: no loss, also after a restart of the server", async () => {
    for (const number of [1, 2, 3]) await put(number);
    const mark = await markNow();
    await deleteEntry(fixture.bus, SESSIONS, sessionHash(3));
    expect(await hasLostData(mark)).toBe(false);
    await removeMarker(fixture.bus, SESSIONS, sessionHash(3));
    expect(await hasLostData(mark)).toBe(false);
    await fixture.nats.kill9();
    await fixture.nats.restart();
    await fixture.isBack();
    expect(await hasLostData(mark)).toBe(false);
    await fixture.bus.jsm.streams.purge(STREAM);
    expect(await hasLostData(mark)).toBe(false);
  });

  test("it has lost its end and used the numbers again, and the marked message is deleted: a loss", async () => {
    await put(1);
    const copy = copyData(fixture.nats);
    for (const number of [2, 3, 4]) await put(number);
    const mark = await markNow();
    await comeBackWith(fixture.nats, copy);
    await fixture.isBack();
    for (const number of [5, 6, 7]) await put(number);
    expect((await markNow()).sequence).toBe(mark.sequence);
    await deleteEntry(fixture.bus, SESSIONS, sessionHash(7));
    expect(await hasLostData(mark)).toBe(true);
  });
});

async function newOrganization(): Promise<{ organizationId: number; filialId: number }> {
  const [row] = await fixture.sql<[{ organization_id: number; filial_id: number }]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id)
    insert into filials (organization_id, name) select organization_id, 'Filial' from o
    returning organization_id, filial_id`;
  return { organizationId: row.organization_id, filialId: row.filial_id };
}

/** Writes sessions with the numbers from 1 as hashes. Every third session is ended. */
async function writeSessions(count: number): Promise<void> {
  const { organizationId } = await newOrganization();
  await fixture.sql`
    with u as (
      insert into users (organization_id, email, name, role, password_hash)
      values (${organizationId}, 'ana@example.org', 'Ana', 'cashier', '') returning organization_id, user_id)
    insert into sessions (organization_id, user_id, token_hash, expires_at, ended_at)
    select organization_id, user_id, decode(lpad(to_hex(n), 64, '0'), 'hex'), now() + interval '1 hour',
           case when n % 3 = 0 then now() end
    from u, generate_series(1, ${count}::int) as n order by n`;
}

const announcements = async (): Promise<unknown> =>
  await fixture.sql`select part, requested_at, finished_at from bus_announcements order by part`;

/** Runs a relay during `work`, and returns the relay's log lines. */
async function relayLines(work: () => Promise<void>): Promise<readonly string[]> {
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const relay = await fixture.startRelay({ log });
  try {
    await work();
  } finally {
    await relay.stop();
  }
  return lines;
}

const isAnnounced = async (part: string): Promise<boolean> =>
  (await fixture.sql`select from bus_announcements where part = ${part} and finished_at is not null`).length === 1;

describe("a relay", () => {
  test("with a new bus: announces active sessions; with an older copy: deletes a session that was ended since", async () => {
    await writeSessions(7);
    await fixture.startAnnouncers();
    await fixture.startRelay();
    await expect.poll(() => isAnnounced("sessions")).toBe(true);
    const found = () => Promise.all([1, 2, 3, 4, 5, 6, 7].map((number) => fixture.session(sessionHash(number))));
    expect(await found()).toEqual(["put", "put", "none", "put", "put", "none", "put"]);

    const copy = copyData(fixture.nats);
    await fixture.sql`update sessions set ended_at = now() where token_hash = decode(${sessionHash(1)}, 'hex')`;
    await fixture.write({ key: "session.1", kind: "session_delete", hash: sessionHash(1) });
    await fixture.delivered();
    expect((await found())[0]).toBe("deleted");
    await comeBackWith(fixture.nats, copy);
    await fixture.isBack();
    await expect.poll(found).toEqual(["deleted", "put", "none", "put", "put", "none", "put"]);
  });

  test("restarts with the bus after its marked messages were replaced: reports no loss and announces nothing", async () => {
    await writeSessions(7);
    await fixture.startAnnouncers();
    const first = await fixture.startRelay();
    await expect.poll(() => isAnnounced("sessions")).toBe(true);
    const marked = (): Promise<unknown> => fixture.sql`select sequence from bus_marks where stream = ${STREAM}`;
    await fixture.write({ key: "session.1", kind: "session_delete", hash: sessionHash(1) });
    await fixture.delivered();
    await expect.poll(marked).toEqual([{ sequence: (await markNow()).sequence }]);
    await first.stop();
    const before = await announcements();

    // A newer message replaces the marked one, and further messages follow.
    await deleteEntry(fixture.bus, SESSIONS, sessionHash(1));
    for (const number of [21, 22]) await put(number);
    await fixture.nats.kill9();
    await fixture.nats.restart();
    await fixture.isBack();
    const lines = await relayLines(async () => {
      const { sequence } = await markNow();
      // After its check, the relay writes a completeness notice for this run of the server.
      await expect.poll(async () => (await markNow()).sequence).toBeGreaterThan(sequence);
    });
    expect(lines.filter((line) => /has lost data|were lost|restored/.test(line))).toEqual([]);
    expect(await announcements()).toEqual(before);
  });

  test("flushes after a stream was lost: the answer has no position of the lost stream", async () => {
    await fixture.startAnnouncers();
    await fixture.startRelay();
    for (const number of [1, 2, 3, 4, 5]) await fixture.write(sessionPut(1, number));
    await fixture.flush(sessionKey(1));
    await fixture.bus.jsm.streams.delete(STREAM);
    await prepareBus(fixture.nats.url, fixture.database.url);
    await fixture.sql`update outbox set delivered_at = delivered_at - interval '10 seconds'`;
    await fixture.write(sessionPut(1, 6));
    const { positions } = await fixture.flush(sessionKey(1));
    const entry = await fixture.newestOf(SESSIONS, sessionHash(6));
    expect(positions).toEqual({ [STREAM]: entry?.seq });
    expect(entry?.seq).toBeLessThan(5);
  });

  test("continues an announcement that a crashed relay has begun", async () => {
    await writeSessions(1_200);
    await fixture.startAnnouncers();
    // These are the rows of a relay that crashed after its first page.
    await fixture.sql`
      insert into bus_marks (stream, created, sequence, stored)
      select ${STREAM}, ${(await markNow()).created}, 0, ''`;
    await fixture.sql`insert into bus_announcements (part, told_through) values ('sessions', 500)`;
    await fixture.startRelay();
    await expect.poll(() => isAnnounced("sessions")).toBe(true);
    expect(await fixture.session(sessionHash(500))).toBe("none");
    expect(await fixture.session(sessionHash(502))).toBe("put");
    expect(await fixture.session(sessionHash(1_199))).toBe("put");
  });

  test("announces a station without a host: its rows wait in the outbox, also a newer one, and the rest is announced", async () => {
    const { organizationId, filialId } = await newOrganization();
    const [station] = await fixture.sql<[{ station_id: number }]>`
      insert into stations (organization_id, filial_id, name, currency, revision)
      values (${organizationId}, ${filialId}, 'Counter', 'EUR', 4) returning station_id`;
    const { station_id: stationId } = station;
    const [device] = await fixture.sql<[{ device_id: number }]>`
      insert into devices (organization_id, station_id, name, kind, capabilities, status, revision)
      values (${organizationId}, ${stationId}, 'Display', 'customer_display', '{display_total}', 'active', 3)
      returning device_id`;
    await fixture.sql`
      insert into device_credentials (organization_id, device_id, credential_hash, scopes)
      values (${organizationId}, ${device.device_id}, decode(${sessionHash(77)}, 'hex'), '{device:read}')`;
    // A change from after the relay read the station.
    await fixture.write(deviceRow(stationId, { deviceId: device.device_id, revision: 4 }));
    await fixture.startAnnouncers();
    await fixture.startRelay();
    await expect.poll(() => isAnnounced("credentials")).toBe(true);
    const entry = await fixture.newestOf(CREDENTIALS, sessionHash(77));
    expect(entry?.json()).toEqual({ deviceId: device.device_id, stationId, scopes: ["device:read"] });
    const left = await fixture.sql`
      select payload #>> '{actor,kind}' as actor, payload #>> '{command,type}' as type from outbox
      where key = ${stationKey(stationId)} and delivered_at is null order by outbox_id`;
    expect(left.map((row) => [row["actor"], row["type"]])).toEqual([
      ["registry", "device_put"],
      ["system", "station_put"],
      ["system", "device_put"],
    ]);
    await fixture.startStations();
    await fixture.delivered();
    const commits = await fixture.commits(stationId);
    expect(commits.at(-1)?.state).toMatchObject({ revision: 4, devices: [{ status: "suspended", revision: 4 }] });
  });

  test("a change of a station that the bus has lost: its first commit has what may have moved money", async () => {
    const { organizationId, filialId } = await newOrganization();
    const [{ station_id: stationId }] = await fixture.sql<[{ station_id: number }]>`
      insert into stations (organization_id, filial_id, name, currency, revision)
      values (${organizationId}, ${filialId}, 'Counter', 'EUR', 2) returning station_id`;
    const lost = { unclear: [], reasons: [], unclearThrough: 7, nextIntentNumber: 3 };
    await fixture.sql`
      insert into audit_heads (station_id, version, stream_sequence, collections)
      values (${stationId}, 5, 50, ${fixture.sql.json(lost)})`;
    // An owner has renamed the station; the row is delivered before the relay announces stations.
    await fixture.write(stationRow(stationId, 2));
    await fixture.startAnnouncers();
    await fixture.startStations();
    await fixture.startRelay();
    await fixture.delivered();
    const [first] = await fixture.commits(stationId);
    expect(first?.state).toMatchObject({ unclearForgottenThrough: 7, nextIntentNumber: 3 });
  });

  test("announces a waiting order that was changed and has left the known orders: the station shows its new amount", async () => {
    const { organizationId, filialId } = await newOrganization();
    const [{ station_id: stationId }] = await fixture.sql<[{ station_id: number }]>`
      insert into stations (organization_id, filial_id, name, currency, revision)
      values (${organizationId}, ${filialId}, 'Counter', 'EUR', 1) returning station_id`;
    const count = STATE_LIMITS.knownOrders + 1;
    const rows = await fixture.sql<{ order_id: number; display_number: number }[]>`
      insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
      select ${organizationId}, ${stationId}, n, 'EUR', 100, 1 from generate_series(1, ${count}::int) as n order by n
      returning order_id, display_number`;
    await fixture.startStations();
    const ask = async (commandId: string, { actor, command }: Pick<StationRequest, "actor" | "command">) => {
      const { reply } = await askStation(fixture.bus.nc, stationId, { commandId, actor, command });
      expect(reply).toMatchObject({ ok: true });
    };
    const station = {
      organizationId,
      filialId,
      name: "Counter",
      currency: "EUR",
      status: "active",
      revision: 1,
    } as const;
    const registry = { kind: "registry", id: 0 } as const;
    await ask("station", { actor: registry, command: { type: "station_put", stationId, station } });
    for (const { order_id: orderId, display_number: orderDisplayNumber } of rows) {
      const order = {
        orderId,
        orderDisplayNumber,
        amountMinor: "100",
        currency: "EUR",
        status: "open",
        revision: 1,
      } as const;
      const settlement = { kind: "settlement", id: 0 } as const;
      await ask(`order ${orderId}`, { actor: settlement, command: { type: "order_put", order } });
    }
    const stateNow = async () => (await fixture.commits(stationId)).at(-1)?.state;
    const waiting = rows[0]?.order_id ?? 0;
    const before = await stateNow();
    expect(before?.waitingOrders[0]).toMatchObject({ orderId: waiting });
    expect(before?.knownOrders.some(({ orderId }) => orderId === waiting)).toBe(false);

    // The bus has lost the commit of this change, and a relay has detected the loss.
    await fixture.sql`update orders set total_minor = 900, revision = 2 where order_id = ${waiting}`;
    await fixture.sql`insert into bus_announcements (part, told_through) values ('stations', 0)`;
    await fixture.startAnnouncers();
    await fixture.startRelay();
    await expect.poll(async () => (await stateNow())?.order).toMatchObject({ orderId: waiting, amountMinor: "900" });
  });
});

describe("a leader reports an end of the stream before the known one", () => {
  const CREATED = "2026-11-22T10:00:00Z";
  const known = {
    mark: { stream: "LOG", created: CREATED, sequence: 9, stored: "2026-11-22T11:00:00Z" },
    noted: { sequence: 9 },
    logs: ONE_LOG,
  };
  const infoAt = (sequence: number) =>
    ({
      config: { name: "LOG" },
      created: CREATED,
      ts: "2026-11-22T12:00:00Z",
      state: { last_seq: sequence, last_ts: sequence === 9 ? "2026-11-22T11:00:00Z" : "2026-11-22T10:30:00Z" },
    }) as unknown as StreamInfo;

  /** A leader that answers with these sequences, one after the other. The last one stays. */
  function leaderAt(...sequences: number[]): { jsm: JetStreamManager; asked: () => number } {
    let asked = 0;
    const info = async () => infoAt(sequences[Math.min(asked++, sequences.length - 1)] ?? 0);
    const getMessage = async () => ({ seq: 9, time: new Date("2026-11-22T11:00:00Z") });
    return { jsm: { streams: { info, getMessage } } as unknown as JetStreamManager, asked: () => asked };
  }

  test("its next report has the known end: no loss, and the newest report counts", async () => {
    const { jsm } = leaderAt(9);
    const { info, isLost } = await checkStream(jsm, infoAt(7), known);
    expect({ isLost, sequence: info.state.last_seq }).toEqual({ isLost: false, sequence: 9 });
  });

  test("three reports have the same end: a loss", async () => {
    const { jsm, asked } = leaderAt(7);
    expect((await checkStream(jsm, infoAt(7), known)).isLost).toBe(true);
    expect(asked()).toBe(2);
  });

  test("the stream is empty, and no end was known: it counts as lost at once, without another request", async () => {
    const { jsm, asked } = leaderAt(0);
    expect((await checkStream(jsm, infoAt(0), { mark: undefined, noted: undefined, logs: ONE_LOG })).isLost).toBe(true);
    expect(asked()).toBe(0);
  });
});
