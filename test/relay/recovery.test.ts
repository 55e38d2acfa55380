/** What the relay does about a bus that has lost its newest data: how it finds out, and how it makes it good. */

import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { CREDENTIALS, SESSIONS } from "../../services/bus/streams.ts";
import { sessionKey, stationKey } from "../../services/db/outbox.ts";
import { startRegistryService } from "../../services/registry/service.ts";
import { deleteEntry, noteComplete, putOnce, removeMarker } from "../../services/relay/buckets.ts";
import { hasLost, markOf, streamInfo } from "../../services/relay/recovery/check-streams.ts";
import { startRelayService } from "../../services/relay/service.ts";
import type { Mark } from "../../services/relay/sql/bus-state.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { startSettlementService } from "../../services/settlement/service.ts";
import { comeBackWith, copyData } from "../support/nats-data.ts";
import { ONE_LOG, STATION_LOG, stationConfirmSubject } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { type RelayFixture, sessionHash, sessionPut, startRelayFixture } from "./relay-fixture.ts";

const STREAM = `KV_${SESSIONS.name}`;
let fixture: RelayFixture;
const services: Service[] = [];
beforeEach(async () => {
  fixture = await startRelayFixture();
});
afterEach(async () => {
  for (const service of services.splice(0)) await service.stop();
  await fixture.stop();
});

/** Those who know what is to be told. */
async function startKnowing(): Promise<void> {
  const settings = {
    natsUrl: fixture.nats.url,

    databaseUrl: fixture.database.url,
    logLevel: "silent",
  };
  const log = createLog({ service: "test", level: "silent" });
  const deps = { bus: fixture.bus, logs: ONE_LOG, log, settings: settings as never, environment: {} };
  services.push(await startRegistryService(deps), await startSettlementService(deps));
}

async function isBack(): Promise<void> {
  await expect.poll(() => fixture.bus.isUp(), { timeout: 15_000 }).toBe(true);
}

const put = (number: number) => putOnce(fixture.bus, SESSIONS, sessionHash(number), { number });

async function look(mark: Mark | undefined, notedSequence = 0): Promise<boolean> {
  const info = await streamInfo(fixture.bus.jsm, STREAM);
  if (info === undefined) throw new Error("There is no stream.");
  return await hasLost(fixture.bus.jsm, info, { mark, notedSequence });
}

async function markNow(): Promise<Mark> {
  const info = await streamInfo(fixture.bus.jsm, STREAM);
  if (info === undefined) throw new Error("There is no stream.");
  return markOf(info);
}

describe("a stream", () => {
  test("that still has its newest message has lost nothing, whoever was killed and whatever was added", async () => {
    for (const number of [1, 2, 3]) await put(number);
    const mark = await markNow();
    expect(await look(mark)).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await fixture.nats.kill9();
    await fixture.nats.restart();
    await isBack();
    expect(await look(mark)).toBe(false);
    await put(4);
    expect(await look(mark)).toBe(false);
  });

  test("of stations, in which hosts only confirm what is the newest: nothing is lost", async () => {
    const { js, jsm } = fixture.bus;
    const lost = async (mark: Mark): Promise<boolean | undefined> => {
      const info = await streamInfo(jsm, STATION_LOG.name);
      return info && (await hasLost(jsm, info, { mark, notedSequence: 0 }));
    };
    const marks: Mark[] = [];
    for (let count = 0; count < 2 * STATION_LOG.maxMessagesPerSubject; count += 1) {
      await js.publish(stationConfirmSubject(), "");
      if (count % 10 === 0) marks.push(markOf(await jsm.streams.info(STATION_LOG.name)));
    }
    for (const mark of marks) expect(await lost(mark)).toBe(false);
  });

  test("that has lost its end is found out, also when it is as long as before again, or longer", async () => {
    await put(1);
    const copy = copyData(fixture.nats);
    for (const number of [2, 3]) await put(number);
    const mark = await markNow();
    await comeBackWith(fixture.nats, copy);
    await isBack();
    expect(await look(mark)).toBe(true);
    for (const number of [4, 5]) await put(number);
    expect((await markNow()).sequence).toBe(mark.sequence);
    expect(await look(mark)).toBe(true);
    await put(6);
    expect(await look(mark)).toBe(true);
  });

  test("that was made anew, or that lacks what somebody else has noted, has lost something; a first look finds nothing", async () => {
    await put(1);
    expect(await look(undefined)).toBe(false);
    expect(await look(await markNow(), 2)).toBe(true);
    const mark = await markNow();
    await fixture.bus.jsm.streams.delete(STREAM);
    await ensureStreams(fixture.bus, { replicas: 1, logs: 1 });
    await put(1);
    expect(await look(mark)).toBe(true);
  });

  test("whose newest message is the relay's own word has lost nothing when that is given anew", async () => {
    await put(1);
    await noteComplete(fixture.bus, SESSIONS, { serverId: "one run of the server" });
    const mark = await markNow();
    await noteComplete(fixture.bus, SESSIONS, { serverId: "another run of the server" });
    expect((await markNow()).sequence).toBeGreaterThan(mark.sequence);
    expect(await look(mark)).toBe(false);
  });

  test("whose marked message was replaced or removed: it has lost nothing, also after a restart of the server", async () => {
    for (const number of [1, 2, 3]) await put(number);
    const mark = await markNow();
    await deleteEntry(fixture.bus, SESSIONS, sessionHash(3));
    expect(await look(mark)).toBe(false);
    await removeMarker(fixture.bus, SESSIONS, sessionHash(3));
    expect(await look(mark)).toBe(false);
    await fixture.nats.kill9();
    await fixture.nats.restart();
    await isBack();
    expect(await look(mark)).toBe(false);
    await fixture.bus.jsm.streams.purge(STREAM);
    expect(await look(mark)).toBe(false);
  });

  test("that has lost its end and gave the numbers out again, of which the marked one is empty: it has lost something", async () => {
    await put(1);
    const copy = copyData(fixture.nats);
    for (const number of [2, 3, 4]) await put(number);
    const mark = await markNow();
    await comeBackWith(fixture.nats, copy);
    await isBack();
    for (const number of [5, 6, 7]) await put(number);
    expect((await markNow()).sequence).toBe(mark.sequence);
    await deleteEntry(fixture.bus, SESSIONS, sessionHash(7));
    expect(await look(mark)).toBe(true);
  });
});

async function newOrganization(): Promise<{ organizationId: number; filialId: number }> {
  const [row] = await fixture.sql<[{ organization_id: number; filial_id: number }]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id)
    insert into filials (organization_id, name) select organization_id, 'Filial' from o
    returning organization_id, filial_id`;
  return { organizationId: row.organization_id, filialId: row.filial_id };
}

/** Sessions with the numbers from 1 as hashes; every third one was ended. */
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

/** What a relay logs while it delivers and the work is done. */
async function relayLines(work: () => Promise<void>): Promise<readonly string[]> {
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const { nats, database, bus } = fixture;
  const settings = { natsUrl: nats.url, databaseUrl: database.url, logLevel: "info" } as const;
  const relay = await startRelayService({ bus, logs: ONE_LOG, log, settings, environment: {} });
  try {
    await work();
  } finally {
    await relay.stop();
  }
  return lines;
}

const isBucketComplete = async (part: string): Promise<boolean> =>
  (await fixture.sql`select from bus_announcements where part = ${part} and finished_at is not null`).length === 1;

describe("a relay", () => {
  test("tells a bus that is new what is known, and nothing that was ended; what was ended and has come back goes", async () => {
    await writeSessions(7);
    await startKnowing();
    await fixture.startRelay();
    await expect.poll(() => isBucketComplete("sessions"), { timeout: 15_000 }).toBe(true);
    const found = () => Promise.all([1, 2, 3, 4, 5, 6, 7].map((number) => fixture.session(sessionHash(number))));
    expect(await found()).toEqual(["put", "put", "none", "put", "put", "none", "put"]);

    const copy = copyData(fixture.nats);
    await fixture.sql`update sessions set ended_at = now() where token_hash = decode(${sessionHash(1)}, 'hex')`;
    await fixture.write({ key: "session.1", kind: "session_delete", hash: sessionHash(1) });
    await fixture.delivered();
    expect((await found())[0]).toBe("deleted");
    await comeBackWith(fixture.nats, copy);
    await isBack();
    await expect.poll(found, { timeout: 15_000 }).toEqual(["deleted", "put", "none", "put", "put", "none", "put"]);
  });

  test("restarts with the bus after its marked messages were replaced: it reports no loss and publishes nothing again", async () => {
    await writeSessions(7);
    await startKnowing();
    const first = await fixture.startRelay();
    await expect.poll(() => isBucketComplete("sessions"), { timeout: 15_000 }).toBe(true);
    const marked = (): Promise<unknown> => fixture.sql`select sequence from bus_marks where stream = ${STREAM}`;
    await fixture.write({ key: "session.1", kind: "session_delete", hash: sessionHash(1) });
    await fixture.delivered();
    await expect.poll(marked, { timeout: 15_000 }).toEqual([{ sequence: (await markNow()).sequence }]);
    await first.stop();
    const before = await announcements();

    // The marked message makes room for its replacement, and the traffic goes on for a while.
    await deleteEntry(fixture.bus, SESSIONS, sessionHash(1));
    for (const number of [21, 22]) await put(number);
    await fixture.nats.kill9();
    await fixture.nats.restart();
    await isBack();
    const lines = await relayLines(async () => {
      const { sequence } = await markNow();
      // The relay's own word for this run of the server, which it gives once it has compared.
      await expect.poll(async () => (await markNow()).sequence, { timeout: 15_000 }).toBeGreaterThan(sequence);
    });
    expect(lines.filter((line) => /lost|restored/.test(line))).toEqual([]);
    expect(await announcements()).toEqual(before);
  });

  test("a flush some seconds after a stream was lost: names no position that the stream had before", async () => {
    await startKnowing();
    await fixture.startRelay();
    for (const number of [1, 2, 3, 4, 5]) await fixture.write(sessionPut(1, number));
    await fixture.flush(sessionKey(1));
    await fixture.bus.jsm.streams.delete(STREAM);
    await prepareBus(fixture.nats.url, fixture.database.url);
    await fixture.sql`update outbox set delivered_at = delivered_at - interval '10 seconds'`;
    await fixture.write(sessionPut(1, 6));
    const { positions } = await fixture.flush(sessionKey(1));
    const subject = `$KV.${SESSIONS.name}.${sessionHash(6)}`;
    const entry = await fixture.bus.jsm.streams.getMessage(STREAM, { last_by_subj: subject });
    expect(positions).toEqual({ [STREAM]: entry?.seq });
    expect(entry?.seq).toBeLessThan(5);
  });

  test("goes on where one that died had come to", async () => {
    await writeSessions(1_200);
    await startKnowing();
    // Noted by a relay that died after its first page.
    await fixture.sql`
      insert into bus_marks (stream, created, sequence, stored)
      select ${STREAM}, ${(await markNow()).created}, 0, ''`;
    await fixture.sql`insert into bus_announcements (part, told_through) values ('sessions', 500)`;
    await fixture.startRelay();
    await expect.poll(() => isBucketComplete("sessions"), { timeout: 10_000 }).toBe(true);
    expect(await fixture.session(sessionHash(500))).toBe("none");
    expect(await fixture.session(sessionHash(502))).toBe("put");
    expect(await fixture.session(sessionHash(1_199))).toBe("put");
  });

  test("leaves to the outbox what a station without a host cannot be told, and tells everybody else", async () => {
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
    await startKnowing();
    await fixture.startRelay();
    await expect.poll(() => isBucketComplete("credentials"), { timeout: 10_000 }).toBe(true);
    const entry = await fixture.bus.jsm.streams.getMessage(`KV_${CREDENTIALS.name}`, {
      last_by_subj: `$KV.${CREDENTIALS.name}.${sessionHash(77)}`,
    });
    expect(entry?.json()).toEqual({ deviceId: device.device_id, stationId, scopes: ["device:read"] });
    const left = await fixture.sql`
      select payload #>> '{command,type}' as type from outbox
      where key = ${stationKey(stationId)} and delivered_at is null order by outbox_id`;
    expect(left.map((row) => row["type"])).toEqual(["station_put", "device_put"]);
    await fixture.startStations();
    await fixture.delivered();
    const commits = await fixture.commits(stationId);
    expect(commits.at(-1)?.state).toMatchObject({ revision: 4, devices: [{ name: "Display", revision: 3 }] });
  });
});
