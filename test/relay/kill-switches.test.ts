/** How the relay writes kill switches into their bucket: never in the wrong order, and again when the bus has lost them. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { switchKeyOf } from "../../services/bus/messages/kill-switches.ts";
import { SWITCHES } from "../../services/bus/streams.ts";
import { followSwitches, type SwitchesReplica } from "../../services/bus/switches-replica.ts";
import { switchKey } from "../../services/db/outbox.ts";
import { setSwitch } from "../../services/relay/buckets.ts";
import { createLog } from "../../services/runtime/log.ts";
import { comeBackWith, copyData } from "../support/nats-data.ts";
import { type RelayFixture, startRelayFixture } from "./relay-fixture.ts";

const log = createLog({ service: "test", level: "silent" });
let fixture: RelayFixture;
let switches: SwitchesReplica;
beforeEach(async () => {
  fixture = await startRelayFixture();
  switches = await followSwitches(fixture.bus, log);
});
afterEach(async () => {
  switches.stop();
  await fixture.stop();
});

const key = switchKeyOf({ kind: "station", id: 7 });
const set = (isOn: boolean, revision: number) => setSwitch(fixture.bus, { key, isOn, revision });
const isFrozen = () => switches.current().stations.has(7);

test("a late delivery of an older revision, on or off: nothing changes", async () => {
  await set(true, 1);
  const { sequence } = await set(false, 2);
  expect(await set(true, 1)).toEqual({ sequence, isNew: false });
  expect(await set(false, 2)).toEqual({ sequence, isNew: false });
  await switches.waitFor(sequence, 2_000);
  expect(isFrozen()).toBe(false);
  const frozen = await set(true, 4);
  expect(await set(false, 3)).toEqual({ sequence: frozen.sequence, isNew: false });
  expect(await switches.waitFor(frozen.sequence, 2_000)).toBe(true);
  expect(isFrozen()).toBe(true);
});

test("another relay writes between the read and the write of a delivery: the newer entry stays", async () => {
  await set(false, 1);
  const { js, jsm } = fixture.bus;
  let reads = 0;
  // The real bucket, but another relay writes between the first read and the following write.
  const streams = Object.assign(Object.create(jsm.streams) as typeof jsm.streams, {
    getMessage: async (...asked: Parameters<typeof jsm.streams.getMessage>) => {
      const found = await jsm.streams.getMessage(...asked);
      reads += 1;
      if (reads === 1) await set(false, 3);
      return found;
    },
  });
  const slow = { js, jsm: Object.assign(Object.create(jsm) as typeof jsm, { streams }) };
  const { sequence, isNew } = await setSwitch(slow, { key, isOn: true, revision: 2 });
  expect([isNew, reads]).toEqual([false, 2]);
  expect(await switches.waitFor(sequence, 2_000)).toBe(true);
  expect(isFrozen()).toBe(false);
});

test("many deliveries at once, in any order: the bucket has the highest revision", async () => {
  for (const base of [100, 200]) {
    const revisions = Array.from({ length: 9 }, (_, index) => base + index).toSorted(() => Math.random() - 0.5);
    const written = await Promise.all(revisions.map((revision) => set(revision % 2 === base / 100 - 1, revision)));
    const newest = Math.max(...written.map(({ sequence }) => sequence));
    expect(await switches.waitFor(newest, 2_000)).toBe(true);
    // The highest revision is even: on in the first round, off in the second.
    expect(isFrozen()).toBe(base === 100);
  }
});

test("several rows of a switch: delivered in their order, and the flush returns the position for replicas", async () => {
  await fixture.startRelay();
  const row = (isOn: boolean, revision: number) =>
    ({ key: switchKey(1), kind: "switch_set", entry: { key, isOn, revision } }) as const;
  await fixture.write(row(true, 1), row(false, 2), row(true, 3));
  const { positions } = await fixture.flush("switch.1");
  const switchesRevision = positions["KV_SWITCHES"] ?? 0;
  expect(switchesRevision).toBeGreaterThan(0);
  expect(await switches.waitFor(switchesRevision, 2_000)).toBe(true);
  expect(isFrozen()).toBe(true);
  await fixture.write(row(false, 4));
  await fixture.delivered();
  await expect.poll(isFrozen).toBe(false);
});

async function writeSwitch(stationId: number, isOn: boolean, revision: number): Promise<void> {
  await fixture.sql`
    with o as (select organization_id from organizations limit 1),
    n as (insert into organizations (name) select 'Organization' where not exists (select from o) returning organization_id)
    insert into kill_switches (subject_kind, subject_id, organization_id, is_on, reason, changed_by_kind, changed_by_id,
      changed_by_name, revision)
    select 'station', ${stationId}, organization_id, ${isOn}, 'A test', 'owner', 1, 'Ana', ${revision}
    from (select * from o union all select * from n) as either
    on conflict (subject_kind, subject_id) do update set is_on = excluded.is_on, revision = excluded.revision`;
}

test("the bus has lost its newest switches: the relay announces again what is frozen and what is not frozen", async () => {
  await fixture.startAnnouncers();
  await fixture.startRelay();
  await writeSwitch(7, true, 10);
  const first = await setSwitch(fixture.bus, { key: "station.7", isOn: true, revision: 10 });
  await switches.waitFor(first.sequence, 2_000);
  const copy = copyData(fixture.nats);
  await writeSwitch(7, false, 20);
  await setSwitch(fixture.bus, { key: "station.7", isOn: false, revision: 20 });
  await writeSwitch(8, true, 30);
  const last = await setSwitch(fixture.bus, { key: "station.8", isOn: true, revision: 30 });
  await switches.waitFor(last.sequence, 2_000);
  // Once a second, the relay stores a mark for each stream.
  const noted = async () =>
    (await fixture.sql`select from bus_marks where stream = 'KV_SWITCHES' and sequence >= ${last.sequence}`).length;
  await expect.poll(noted).toBe(1);

  await expect.poll(() => switches.isTrusted()).toBe(true);
  /** The states that the replica has trusted from here on. */
  const trusted = new Set<string>();
  const isTrusted = (): boolean => {
    if (!switches.isTrusted()) return false;
    trusted.add([...switches.current().stations].join());
    return true;
  };
  const sampling = setInterval(isTrusted, 1);
  await comeBackWith(fixture.nats, copy);
  await fixture.isBack();
  const operationOf = async (stationId: number) =>
    (await fixture.newestOf(SWITCHES, `station.${stationId}`))?.header.get("KV-Operation");
  await expect.poll(() => operationOf(8)).toBe("");
  await expect.poll(() => operationOf(7)).toBe("DEL");
  await expect.poll(() => [...switches.current().stations]).toEqual([8]);
  await expect.poll(isTrusted).toBe(true);
  clearInterval(sampling);
  expect([...trusted], "the replica never trusted the old entries of the bus").toEqual(["8"]);
});
