import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readCopyLags, waitUntilCopied } from "../../services/audit/copy/progress.ts";
import { AUDIT_LIMITS } from "../../services/audit/limits.ts";
import { StationLogs } from "../../services/bus/streams.ts";
import { findCopiedIntent } from "../../services/db/intent-history.ts";
import { readStoredJson } from "../../services/db/stored-text.ts";
import { ONE_LOG, stationConfirmSubject, stationLogSubject } from "../support/one-log.ts";
import { type AuditWorld, committedEvents, copiedEvents, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot, type ScriptedStation } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
});
afterAll(() => world.stop());

/** A log that a test can read. */
function recordingLog() {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  return { log, lines };
}

describe("the audit copy", () => {
  test("it has every event of every commit once, with its actor, time and sequence in the stream", async () => {
    const audit = await world.startAudit();
    const station = await world.openStation();
    await station.collect(1001, orderSnapshot(1));
    await station.report(1001, { outcome: "reported_declined", providerReference: "", providerCode: "51" });
    await world.untilCopied();
    const { stationId, organizationId, companionId } = station.facts;
    expect(await copiedEvents(world.database, stationId)).toEqual(committedEvents(station));
    const newest = station.commits.at(-1);
    const [row] = await world.database`
      select * from station_events where station_id = ${stationId} order by version desc limit 1`;
    expect(row).toMatchObject({
      organization_id: organizationId,
      intent_id: 1001,
      at: new Date(station.nowMs),
      type: "outcome_reported",
      actor_kind: "device",
      actor_id: companionId,
      actor_name: "Counter terminal",
      machine_version: newest?.commit.machineVersion,
      stream_sequence: newest?.sequence,
    });
    const { type: _type, ...data } = newest?.commit.events[0] ?? { type: "" };
    expect(row?.["data"]).toEqual(data);
    await audit.stop();
  });

  test("no commits for some time: the copier reads seldom, and copies the next commit", async () => {
    const audit = await world.startAudit();
    const station = await world.openStation();
    await world.untilCopied();
    await delay(AUDIT_LIMITS.busyMs + AUDIT_LIMITS.idlePollMs);
    let reads = 0;
    const reading = world.bus.nc.subscribe("$JS.API.DIRECT.GET.>", { callback: () => void (reads += 1) });
    await delay(4 * AUDIT_LIMITS.idlePollMs);
    reading.unsubscribe();
    expect(reads).toBeLessThanOrEqual(5);
    await station.collect(1000, orderSnapshot(1));
    await world.untilCopied();
    expect(await copiedEvents(world.database, station.facts.stationId)).toEqual(committedEvents(station));
    await audit.stop();
  });

  test("confirmations between the commits: not copied, and the copy is complete", async () => {
    const { log, lines } = recordingLog();
    const audit = await world.startAudit({ log });
    const station = await world.openStation();
    await world.bus.js.publish(stationConfirmSubject(), "");
    await station.collect(1002, orderSnapshot(1));
    await world.bus.js.publish(stationConfirmSubject(), "");
    await world.untilCopied();
    const { stationId } = station.facts;
    expect(await copiedEvents(world.database, stationId)).toEqual(committedEvents(station));
    const deps = { ...world, jsm: world.bus.jsm, logs: ONE_LOG, log };
    const position = station.commits.at(-1)?.sequence;
    expect(await readCopyLags(deps)).toEqual([{ log: "STATION_LOG_0", position, behind: 0, lateMs: 0 }]);
    expect(await waitUntilCopied(deps)).toBe(true);
    await audit.stop();
    expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  });

  test("the copier restarts: it continues at its position, and a second copy from the start adds no event", async () => {
    const station = await world.openStation();
    const first = await world.startAudit();
    await station.collectCash(1101);
    await world.untilCopied();
    await first.stop();
    await station.collectCash(1102);
    const second = await world.startAudit();
    await station.collectCash(1103);
    await world.untilCopied();
    await second.stop();
    const { stationId } = station.facts;
    const before = await world.database`select * from station_events order by station_id, version, ordinal`;
    expect(await copiedEvents(world.database, stationId)).toEqual(committedEvents(station));

    await world.database`update audit_position set sequence = 0`;
    const third = await world.startAudit();
    await world.untilCopied();
    await third.stop();
    expect(await world.database`select * from station_events order by station_id, version, ordinal`).toEqual(before);
  });

  test("several copiers: one copies, and another takes over when it stops", async () => {
    const station = await world.openStation();
    const audits = await Promise.all([world.startAudit(), world.startAudit(), world.startAudit()]);
    for (const [index, audit] of audits.entries()) {
      await station.collectCash(1200 + index);
      await world.untilCopied();
      const [row] = await world.database`select held_until > now() as held from audit_position`;
      expect(row).toEqual({ held: true });
      if (index < 2) await audit.stop();
    }
    expect(await copiedEvents(world.database, station.facts.stationId)).toEqual(committedEvents(station));
    await audits[2]?.stop();
  });

  test("texts with characters that PostgreSQL cannot store: events and intents are copied with all characters", async () => {
    const audit = await world.startAudit();
    const station = await (await world.newStation()).open({ name: "Terminal \0" });
    await station.collect(1301, orderSnapshot(1));
    const key = "k\0\ud800";
    await station.report(1301, { providerReference: "a\0b", providerCode: "\ud800" }, key);
    await world.untilCopied();
    const { stationId } = station.facts;
    const [row] = await world.database`
      select data, actor_name from station_events where station_id = ${stationId} and type = 'outcome_reported'`;
    expect(readStoredJson(row?.["data"])).toMatchObject({ providerReference: "a\0b", providerCode: "\ud800" });
    expect(row?.["actor_name"]).toBe("Terminal \uFFFD");
    // The copied intent has every character.
    const copied = await findCopiedIntent(world.database, { stationId, intentId: 1301 });
    expect(copied?.intent.reports).toMatchObject([{ providerReference: "a\0b", providerCode: "\ud800" }]);
    await audit.stop();
  });
});

describe("a gap in the audit copy", () => {
  test("the log no longer has the missed commits: the copy has a gap in the events, and the end of each collection", async () => {
    const station = await world.openStation();
    const first = await world.startAudit();
    await station.collect(1999, orderSnapshot(1999));
    await world.untilCopied();
    await first.stop();
    const copied = station.commits.length;
    await station.do({ type: "intent_cancel", intentId: 1999 }, station.cashier);
    // These are 40 collections of three commits each. The stream keeps 64 messages of a station.
    for (let index = 0; index < 40; index += 1) await station.collectCash(2000 + index);
    await recordEnds(station);
    const { log, lines } = recordingLog();
    const second = await world.startAudit({ log });
    await world.untilCopied();
    const { stationId } = station.facts;
    const missing = station.commits.length - 64 - copied;
    expect(missing).toBe(57);
    const fromVersion = copied + 1;
    const toVersion = copied + missing;
    const kept = committedEvents(station).filter((event) => !isBetween(event, fromVersion, toVersion));
    const events = await copiedEvents(world.database, stationId);
    expect(events.toSorted()).toEqual([...kept, `${fromVersion}.0 audit_gap`].toSorted());
    const [gap] = await world.database`
      select data, organization_id from station_events where station_id = ${stationId} and type = 'audit_gap'`;
    expect(gap).toEqual({ data: { fromVersion, toVersion }, organization_id: station.facts.organizationId });
    expect(lines.filter((line) => line["msg"] === "commits are missing in the audit copy")).toMatchObject([
      { level: 50, stationId, fromVersion, toVersion },
    ]);

    // The log has lost nothing: newer commits have replaced older ones.
    const messages = lines.map((line) => line["msg"]);
    expect(messages).not.toContain("the station log has lost commits that its audit copy has");

    // Collection 2017 ended within the gap. The state after the gap still had it.
    const found = await findCopiedIntent(world.database, { stationId, intentId: 2017 });
    expect(found?.intent).toMatchObject({ status: "succeeded", intentId: 2017 });

    // These had left the state before the first commit after the gap.
    const payments = await world.database`
      select status, count(*), count(ended_at) as ended from payments where station_id = ${stationId}
      group by status order by status`;
    expect(payments).toEqual([
      { status: "cancelled", count: 1, ended: 1 },
      { status: "succeeded", count: 40, ended: 40 },
    ]);
    const open = await findCopiedIntent(world.database, { stationId, intentId: 1999 });
    expect(open?.intent).toMatchObject({ status: "cancelled" });
    await second.stop();
  });

  /** Each collection after the first one brings the settlement service the end of the collection before. */
  async function recordEnds({ commits, facts: { stationId } }: ScriptedStation): Promise<void> {
    for (const { commit } of commits) {
      const [ended] = commit.state.ended;
      if (ended === undefined || commit.state.intent === null) continue;
      await world.database`
        insert into intent_records (intent_id, station_id, ended, created_at)
        values (${ended.intentId}, ${stationId}, ${JSON.stringify(ended)}, ${new Date(ended.createdAtMs)})
        on conflict do nothing`;
    }
  }

  test("messages in the log that are no commits: the copier logs each and continues", async () => {
    const { log, lines } = recordingLog();
    const audit = await world.startAudit({ log });
    const station = await world.openStation();
    const { stationId } = station.facts;
    const other = stationLogSubject(stationId + 500_000);
    for (const text of [
      "",
      "no json",
      "null",
      "[]",
      '{"version":1}',
      '{"version":1,"machineVersion":1,"events":[],"state":{}}',
    ]) {
      await world.bus.js.publish(other, text);
    }
    await station.collectCash(2101);
    await world.untilCopied();
    expect(await copiedEvents(world.database, stationId)).toEqual(committedEvents(station));
    expect(lines.filter((line) => line["msg"] === "a message in the station log is no commit")).toHaveLength(6);
    await audit.stop();
  });
});

test("the newest message of the log is no commit: the next copier continues after it and reports no loss", async () => {
  const station = await world.openStation();
  const first = await world.startAudit();
  await world.bus.js.publish(stationLogSubject(station.facts.stationId + 500_000), "no commit");
  await world.untilCopied();
  await first.stop();
  const { log, lines } = recordingLog();
  const second = await world.startAudit({ log });
  await station.collectCash(2201);
  await world.untilCopied();
  const messages = lines.map((line) => line["msg"]);
  expect(messages).not.toContain("the station log has lost commits that its audit copy has");
  expect(await copiedEvents(world.database, station.facts.stationId)).toEqual(committedEvents(station));
  await second.stop();
});

test("the position is after the end of the log: the copier reports a loss and copies all commits of the log", async () => {
  const station = await world.openStation();
  const { log, lines } = recordingLog();
  await world.database`update audit_position set sequence = 1000000`;
  const audit = await world.startAudit({ log });
  await expect
    .poll(() => copiedEvents(world.database, station.facts.stationId), { timeout: 15_000 })
    .toEqual(committedEvents(station));
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: "the station log has lost commits that its audit copy has" }),
  );
  await audit.stop();
});

test("several logs: each has a separate position, and a wrong position of one log causes no loss in any", async () => {
  const logs = new StationLogs(3);
  const several = await startAuditWorld(logs);
  const { database, bus } = several;
  const first = await several.startAudit();
  const byLog = new Map<string, ScriptedStation>();
  while (byLog.size < logs.count) {
    const station = await several.newStation();
    const { name } = logs.of(station.facts.stationId);
    if (!byLog.has(name)) byLog.set(name, await station.open());
  }
  const stations = [...byLog.values()];
  await Promise.all(stations.map((station, index) => station.collectCash(100 + index)));
  await several.untilCopied();
  await first.stop();
  const ends = [...byLog].map(([stream, { commits }]) => ({ stream, sequence: commits.at(-1)?.sequence }));
  const positions = await database`select stream, sequence from audit_position order by stream`;
  expect(positions).toEqual(ends.toSorted((a, b) => a.stream.localeCompare(b.stream)));

  // The position of the first log is now after that log's end.
  await database`update audit_position set sequence = 1000 where stream = ${logs.all[0]?.name ?? ""}`;
  await several.startAudit();
  await Promise.all(stations.map((station, index) => station.collectCash(200 + index)));
  await several.untilCopied();
  for (const station of stations) {
    expect(await copiedEvents(database, station.facts.stationId)).toEqual(committedEvents(station));
  }
  expect(await database`select from station_events where type in ('log_lost', 'audit_gap')`).toHaveLength(0);
  const lags = await readCopyLags({ bus, database, logs });
  expect(lags.map(({ log, behind }) => [log, behind])).toEqual(logs.all.map(({ name }) => [name, 0]));
  await several.stop();
});

function isBetween(event: string, fromVersion: number, toVersion: number): boolean {
  const version = Number(event.slice(0, event.indexOf(".")));
  return version >= fromVersion && version <= toVersion;
}
