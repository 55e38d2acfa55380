/** How kill switches come into their bucket: never in the wrong order, whoever delivers, and anew when the bus has lost them. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { switchKeyOf } from "../../services/bus/messages/kill-switches.ts";
import { followSwitches, type SwitchesReplica } from "../../services/bus/switches-replica.ts";
import { switchKey } from "../../services/db/outbox.ts";
import { startRegistryService } from "../../services/registry/service.ts";
import { setSwitch } from "../../services/relay/buckets.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { startSettlementService } from "../../services/settlement/service.ts";
import { comeBackWith, copyData } from "../support/nats-data.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { type RelayFixture, startRelayFixture } from "./relay-fixture.ts";

const log = createLog({ service: "test", level: "silent" });
let fixture: RelayFixture;
let switches: SwitchesReplica;
const services: Service[] = [];
beforeEach(async () => {
  fixture = await startRelayFixture();
  switches = await followSwitches(fixture.bus, log);
});
afterEach(async () => {
  switches.stop();
  for (const service of services.splice(0)) await service.stop();
  await fixture.stop();
});

const key = switchKeyOf({ kind: "station", id: 7 });
const set = (isOn: boolean, revision: number) => setSwitch(fixture.bus, { key, isOn, revision });
const isFrozen = () => switches.current().stations.has(7);

test("a delivery that comes late changes nothing, neither an old freeze nor an old end of one", async () => {
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

test("a delivery that is overtaken between its look and its write does not take back what has overtaken it", async () => {
  await set(false, 1);
  const { js, jsm } = fixture.bus;
  let looks = 0;
  // The real bucket, except that the first look is followed by another relay's write before its own.
  const streams = Object.assign(Object.create(jsm.streams) as typeof jsm.streams, {
    getMessage: async (...asked: Parameters<typeof jsm.streams.getMessage>) => {
      const found = await jsm.streams.getMessage(...asked);
      looks += 1;
      if (looks === 1) await set(false, 3);
      return found;
    },
  });
  const slow = { js, jsm: Object.assign(Object.create(jsm) as typeof jsm, { streams }) };
  const { sequence, isNew } = await setSwitch(slow, { key, isOn: true, revision: 2 });
  expect([isNew, looks]).toEqual([false, 2]);
  expect(await switches.waitFor(sequence, 2_000)).toBe(true);
  expect(isFrozen()).toBe(false);
});

test("of many deliveries at once, in any order, the highest revision stands when all are over", async () => {
  for (const base of [100, 200]) {
    const revisions = Array.from({ length: 9 }, (_, index) => base + index).toSorted(() => Math.random() - 0.5);
    const written = await Promise.all(revisions.map((revision) => set(revision % 2 === base / 100 - 1, revision)));
    const newest = Math.max(...written.map(({ sequence }) => sequence));
    expect(await switches.waitFor(newest, 2_000)).toBe(true);
    // The last one is an even revision: on in the first round, off in the second.
    expect(isFrozen()).toBe(base === 100);
  }
});

test("the relay delivers the rows of a switch in their order and says how far a replica must come", async () => {
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

async function startKnowing(): Promise<void> {
  const settings = {
    natsUrl: fixture.nats.url,

    databaseUrl: fixture.database.url,
    logLevel: "silent",
  };
  const deps = { bus: fixture.bus, logs: ONE_LOG, log, settings: settings as never, environment: {} };
  services.push(await startRegistryService(deps), await startSettlementService(deps));
}

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

test("a bus that comes back with an older end is told again what is frozen, and what is not any more", async () => {
  await startKnowing();
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
  // The relay notes once a second what the streams have.
  const noted = async () =>
    (await fixture.sql`select from bus_marks where stream = 'KV_SWITCHES' and sequence >= ${last.sequence}`).length;
  await expect.poll(noted, { timeout: 15_000 }).toBe(1);

  await expect.poll(() => switches.isTrusted(), { timeout: 15_000 }).toBe(true);
  /** What counted as the truth at any moment from here on. */
  const believed = new Set<string>();
  const sampling = setInterval(() => {
    if (switches.isTrusted()) believed.add([...switches.current().stations].join());
  }, 1);
  await comeBackWith(fixture.nats, copy);
  await expect.poll(() => fixture.bus.isUp(), { timeout: 15_000 }).toBe(true);
  const operationOf = async (stationId: number) => {
    const query = { last_by_subj: `$KV.SWITCHES.station.${stationId}` };
    return (await fixture.bus.jsm.streams.getMessage("KV_SWITCHES", query))?.header.get("KV-Operation");
  };
  await expect.poll(() => operationOf(8), { timeout: 15_000 }).toBe("");
  await expect.poll(() => operationOf(7), { timeout: 15_000 }).toBe("DEL");
  await expect.poll(() => [...switches.current().stations], { timeout: 15_000 }).toEqual([8]);
  await expect.poll(() => switches.isTrusted(), { timeout: 15_000 }).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, 300));
  clearInterval(sampling);
  expect([...believed], "what the bus had come back with was never believed").toEqual(["8"]);
});
