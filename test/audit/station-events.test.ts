import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DeviceDescription } from "../../machines/station/state.ts";
import { startingPosition } from "../../services/audit/copy/lost-commits.ts";
import { copyRetention } from "../../services/audit/retention.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { type AuditEvent, listStationEvents } from "../../services/bus/messages/events.ts";
import { createLog } from "../../services/runtime/log.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { ONE_LOG, STATION_LOG } from "../support/one-log.ts";
import { type AuditWorld, committedEvents, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot, type ScriptedStation } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

const label = (event: AuditEvent) => `${event.version}.${event.ordinal} ${event.type}`;

test.each([1, 2, 3, 500])("station events: pages of %i contain every event exactly once", async (limit) => {
  const station = await world.openStation();
  await station.collectCash(10_000 + limit);
  await station.collect(20_000 + limit, orderSnapshot(1));
  station.nowMs += 3_600_000;
  // This commit has two events: the overdue collection expires, and the next one begins.
  await station.collect(30_000 + limit, orderSnapshot(2));
  const { stationId } = station.facts;
  const seen: string[] = [];
  let sinceVersion = 0;
  for (let hasMore = true; hasMore; ) {
    const page = await world.ask(listStationEvents, { caller: world.ownerOf(station), stationId, sinceVersion, limit });
    seen.push(...page.events.map(label));
    sinceVersion = page.events.at(-1)?.version ?? sinceVersion;
    hasMore = page.hasMore;
  }
  expect(seen).toEqual(committedEvents(station));
  expect(committedEvents(station).some((event) => event.includes(".1 "))).toBe(true);
});

test("station events: a person's command applies overdue deadlines; the actor of those events is the system", async () => {
  const station = await world.openStation();
  await station.do({ type: "lease_release" }, station.cashier);
  await station.do({ type: "lease_acquire", lifetimeMs: 60_000 }, station.cashier);
  await station.collect(51_001, orderSnapshot(1));
  station.nowMs += 3_600_000;
  // The owner renames the companion after the deadlines of the collection and of the lease.
  await station.do(
    { type: "device_put", device: { ...(station.state?.devices[0] as DeviceDescription), name: "New", revision: 2 } },
    { kind: "owner", id: 98 },
  );
  const { stationId } = station.facts;
  const sinceVersion = station.commits.length - 1;
  const { events } = await world.ask(listStationEvents, {
    caller: world.ownerOf(station),
    stationId,
    sinceVersion,
    limit: 10,
  });
  expect(events.map(({ type, actor }) => `${type} ${actor.kind} ${actor.id}`)).toEqual([
    "intent_expired system 0",
    "lease_lapsed system 0",
    "device_changed owner 98",
  ]);
});

test("station events: not_found for another organization's station, permission_denied for a cashier", async () => {
  const station = await world.openStation();
  const foreign = await world.newStation();
  const { stationId } = station.facts;
  const ask = (changes: object) =>
    world.ask(listStationEvents, { caller: world.ownerOf(station), stationId, sinceVersion: 0, limit: 10, ...changes });
  await expect(ask({ caller: world.ownerOf(foreign) })).rejects.toMatchObject({ refusal: { code: "not_found" } });
  await expect(ask({ stationId: 888_888 })).rejects.toMatchObject({ refusal: { code: "not_found" } });
  const cashier = { ...world.ownerOf(station), permissions: ["payments.collect"] };
  await expect(ask({ caller: cashier })).rejects.toMatchObject({ refusal: { code: "permission_denied" } });
});

test("retention: the job deletes old events and intents, and the copy records no gap and no loss", async () => {
  const station = await world.newStation();
  const now = station.nowMs;
  station.nowMs = Date.now() - 40 * 24 * 3_600_000;
  await station.open();
  await station.collectCash(41_001);
  const old = station.commits.length;
  station.nowMs = Math.max(now, Date.now());
  await station.do({ type: "lease_acquire" }, station.cashier);
  await station.collectCash(41_002);
  await world.untilCopied();
  const { database } = world;
  const log = createLog({ service: "test", level: "silent" });
  const remove = (eventRetentionDays: number) =>
    removeExpired(copyRetention({ database }, { eventRetentionDays }), log);
  await remove(60);
  const { stationId } = station.facts;
  const count = async () => {
    const [row] = await world.database`
      select (select count(*) from station_events where station_id = ${stationId}) as events,
             (select count(*) from intent_history where station_id = ${stationId}) as intents,
             (select count(*) from payments where station_id = ${stationId}) as payments`;
    return row;
  };
  const events = committedEvents(station).length;
  expect(await count()).toEqual({ events, intents: 2, payments: 2 });
  await remove(30);
  expect(await count()).toEqual({ events: events - old, intents: 1, payments: 1 });

  const deps = { ...world, jsm: world.bus.jsm, logs: ONE_LOG, log, eventRetentionDays: 30 };
  const position = station.commits[old - 1]?.sequence ?? 0;
  const start = { log: STATION_LOG, hold: { stream: STATION_LOG.name, holder: "test" }, position };
  expect(await startingPosition(deps, start, new AbortController().signal), "no later commit").toBe(position);

  await station.collectCash(41_003);
  await world.untilCopied();
  const gaps = await world.database`select from station_events where station_id = ${stationId} and type = 'audit_gap'`;
  expect(gaps).toHaveLength(0);
});

describe("events with the longest texts that a device can report", () => {
  const INTENT = 70_001;
  const COMMITS = 400;
  let station: ScriptedStation;
  let firstCommits: number;
  beforeAll(async () => {
    station = await world.openStation();
    await station.collect(INTENT, orderSnapshot(1));
    await world.untilCopied();
    firstCommits = station.commits.length;
    const { stationId, organizationId, companionId } = station.facts;
    // Each commit has three reports, so a page that ends too early would divide a commit.
    await world.database`
      insert into station_events (station_id, version, ordinal, organization_id, intent_id, at, type, actor_kind,
                                  actor_id, actor_name, data, machine_version, stream_sequence)
      select ${stationId}, ${firstCommits} + n, o, ${organizationId}, ${INTENT}, now(), 'outcome_reported', 'device',
             ${companionId}, 'Tablet',
             jsonb_build_object('type', 'outcome_reported', 'intentId', ${INTENT}::bigint, 'deviceId', ${companionId}::bigint,
               'outcome', 'reported_unknown', 'providerReference', repeat(chr(1), 255), 'providerCode', repeat(chr(2), 100 + n * 37 % 155)),
             1, 0
      from generate_series(1, ${COMMITS}) as n, generate_series(0, 2) as o`;
  });
  test("station events: every page ends with the last event of a commit", async () => {
    const { stationId } = station.facts;
    const caller = world.ownerOf(station);
    const seen: string[] = [];
    let sinceVersion = firstCommits;
    let pages = 0;
    for (let hasMore = true; hasMore; pages += 1) {
      const page = await world.ask(listStationEvents, { caller, stationId, sinceVersion, limit: BOUNDS.listed });
      expect(page.events.length % 3).toBe(0);
      seen.push(...page.events.map((event) => `${event.version - firstCommits}.${event.ordinal}`));
      sinceVersion = page.events.at(-1)?.version ?? sinceVersion;
      hasMore = page.hasMore;
    }
    expect(pages).toBeGreaterThan(2);
    expect(seen).toEqual(
      Array.from({ length: COMMITS }, (_, index) => [`${index + 1}.0`, `${index + 1}.1`, `${index + 1}.2`]).flat(),
    );
  });

  test("timeline: it contains the creation and the newest reports", async () => {
    const { entries } = await world.timelineOf(station, INTENT);
    expect(entries[0]?.type).toBe("intent_created");
    const later = entries.slice(1);
    // An event takes less than 6,000 bytes of the answer, and the newest events fill the answer.
    expect(later.length).toBeGreaterThan(BOUNDS.listedBytes / 6_000);
    expect(later.length).toBeLessThan(2 * COMMITS);
    expect(new Set(later.map(({ type }) => type))).toEqual(new Set(["outcome_reported"]));
  });
});
