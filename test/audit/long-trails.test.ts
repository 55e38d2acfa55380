/** Trails with the longest texts that a device can report still fit into their messages, and nothing of them is lost. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { listStationEvents } from "../../services/bus/messages/events.ts";
import { getIntentTimeline } from "../../services/bus/messages/timelines.ts";
import { type AuditWorld, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot, type ScriptedStation } from "./scripted-station.ts";

const INTENT = 70_001;
const COMMITS = 400;

let world: AuditWorld;
let station: ScriptedStation;
let before: number;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
  station = await (await world.newStation()).open();
  await station.collect(INTENT, orderSnapshot(1));
  await world.untilCopied();
  before = station.commits.length;
  const { stationId, organizationId, companionId } = station.facts;
  // Three reports in each commit, so that a page could divide one.
  await world.database`
    insert into station_events (station_id, version, ordinal, organization_id, intent_id, at, type, actor_kind,
                                actor_id, actor_name, data, machine_version, stream_sequence)
    select ${stationId}, ${before} + n, o, ${organizationId}, ${INTENT}, now(), 'outcome_reported', 'device',
           ${companionId}, 'Tablet',
           jsonb_build_object('type', 'outcome_reported', 'intentId', ${INTENT}::bigint, 'deviceId', ${companionId}::bigint,
             'outcome', 'reported_unknown', 'providerReference', repeat(chr(1), 255), 'providerCode', repeat(chr(2), 100 + n * 37 % 155)),
           1, 0
    from generate_series(1, ${COMMITS}) as n, generate_series(0, 2) as o`;
});
afterAll(() => world.stop());

test("a station's events come in pages that end with a whole commit", async () => {
  const { stationId } = station.facts;
  const caller = world.ownerOf(station);
  const seen: string[] = [];
  let sinceVersion = before;
  let pages = 0;
  for (let hasMore = true; hasMore; pages += 1) {
    const page = await world.ask(listStationEvents, { caller, stationId, sinceVersion, limit: BOUNDS.listed });
    expect(page.events.length % 3).toBe(0);
    seen.push(...page.events.map((event) => `${event.version - before}.${event.ordinal}`));
    sinceVersion = page.events.at(-1)?.version ?? sinceVersion;
    hasMore = page.hasMore;
  }
  expect(pages).toBeGreaterThan(2);
  expect(seen).toEqual(
    Array.from({ length: COMMITS }, (_, index) => [`${index + 1}.0`, `${index + 1}.1`, `${index + 1}.2`]).flat(),
  );
});

test("a payment's timeline tells its creation and its newest steps, in order", async () => {
  const { entries } = await world.ask(getIntentTimeline, { caller: world.ownerOf(station), intentId: INTENT });
  expect(entries[0]?.type).toBe("intent_created");
  const later = entries.slice(1);
  // A commit has some fourteen kilobytes of events; the newest ones fill the answer.
  expect(later.length).toBeGreaterThan(BOUNDS.listedBytes / 6_000);
  expect(later.length).toBeLessThan(2 * COMMITS);
  expect(new Set(later.map(({ type }) => type))).toEqual(new Set(["outcome_reported"]));
});
