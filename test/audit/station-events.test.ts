import { afterAll, beforeAll, expect, test } from "vitest";
import type { DeviceDescription } from "../../machines/station/state.ts";
import { copyRetention } from "../../services/audit/retention.ts";
import { type AuditEvent, listStationEvents } from "../../services/bus/messages/events.ts";
import { createLog } from "../../services/runtime/log.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { type AuditWorld, committedEvents, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

const label = (event: AuditEvent) => `${event.version}.${event.ordinal} ${event.type}`;

test.each([1, 2, 3, 500])("a station's events are paged without losing any, %i at a time", async (limit) => {
  const station = await (await world.newStation()).open();
  await station.collectCash(10_000 + limit);
  // A commit of two events: the deadline, then the command's own.
  await station.collect(20_000 + limit, orderSnapshot(1));
  station.nowMs += 3_600_000;
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

test("a deadline is nobody's doing, whoever's command it came with", async () => {
  const station = await (await world.newStation()).open();
  await station.do({ type: "lease_release" }, station.cashier);
  await station.do({ type: "lease_acquire", lifetimeMs: 60_000 }, station.cashier);
  await station.collect(51_001, orderSnapshot(1));
  station.nowMs += 3_600_000;
  // The owner renames the companion; the collection and the lease were over long before.
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

test("another organization's station is not found, and a cashier may not look", async () => {
  const station = await (await world.newStation()).open();
  const foreign = await world.newStation();
  const { stationId } = station.facts;
  const ask = (more: object) =>
    world.ask(listStationEvents, { caller: world.ownerOf(station), stationId, sinceVersion: 0, limit: 10, ...more });
  await expect(ask({ caller: world.ownerOf(foreign) })).rejects.toMatchObject({ refusal: { code: "not_found" } });
  await expect(ask({ stationId: 888_888 })).rejects.toMatchObject({ refusal: { code: "not_found" } });
  const cashier = { ...world.ownerOf(station), permissions: ["payments.collect"] };
  await expect(ask({ caller: cashier })).rejects.toMatchObject({ refusal: { code: "permission_denied" } });
});

test("what is past its retention goes, the rest stays, and a gap is not made of it", async () => {
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
             (select count(*) from intent_history where station_id = ${stationId}) as intents`;
    return row;
  };
  const events = committedEvents(station).length;
  expect(await count()).toEqual({ events, intents: 2 });
  await remove(30);
  expect(await count()).toEqual({ events: events - old, intents: 1 });
  await station.collectCash(41_003);
  await world.untilCopied();
  const gaps = await world.database`select from station_events where station_id = ${stationId} and type = 'audit_gap'`;
  expect(gaps).toHaveLength(0);
});
