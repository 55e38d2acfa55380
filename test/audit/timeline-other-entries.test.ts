/** Parts of a timeline from other sources than the station's log: freezes, device names, references of provider payments. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AuditWorld, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot, type ScriptedStation } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

async function sentencesOf(station: ScriptedStation, intentId: number): Promise<string[]> {
  const { entries } = await world.timelineOf(station, intentId);
  return entries.map(({ moneyMoved, sentence }) => `${moneyMoved}: ${sentence}`);
}

/** Writes an event of the registry's audit log, half a second after the station's clock. */
async function recordRegistryEvent(
  station: ScriptedStation,
  action: string,
  subject: readonly [kind: string, id: number],
  options: { readonly data?: object; readonly atMs?: number; readonly organizationId?: number } = {},
): Promise<void> {
  const { atMs = station.nowMs + 500, data = { reason: "A drill" } } = options;
  const organizationId = subject[0] === "platform" ? null : (options.organizationId ?? station.facts.organizationId);
  const [kind, name] = organizationId === null ? ["registry", "Night shift"] : ["owner", "Olga"];
  await world.database`
    insert into registry_events (organization_id, at, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data)
    values (${organizationId}, to_timestamp(${atMs} / 1000.0), ${kind}, ${organizationId === null ? 0 : 99}, ${name},
      ${action}, ${subject[0]}, ${subject[1]}, ${world.database.json(data as never)})`;
}

describe("timeline: freezes", () => {
  test("freezes that were on during the collection: listed in order of time; no other freeze is listed", async () => {
    const station = await world.openStation();
    const { stationId, organizationId, companionId } = station.facts;
    const here = ["station", stationId] as const;
    // Not listed: a freeze that ended before the collection, and one of another station.
    await recordRegistryEvent(station, "device_frozen", ["device", companionId]);
    station.nowMs += 1_000;
    await recordRegistryEvent(station, "device_unfrozen", ["device", companionId]);
    await recordRegistryEvent(station, "station_frozen", ["station", stationId + 1_000]);
    // Listed: it is on when the collection begins.
    await recordRegistryEvent(station, "organization_frozen", ["organization", organizationId], {
      data: { reason: "The till is short" },
    });
    station.nowMs += 1_000;
    await station.do(
      { type: "intent_create", route: "cash", intentId: 1_101, order: orderSnapshot(1_101) },
      station.cashier,
    );
    await recordRegistryEvent(station, "station_frozen", here);
    // Not listed: it is in another organization's audit log.
    await recordRegistryEvent(station, "organization_unfrozen", ["organization", organizationId], {
      organizationId: (await world.newStation()).facts.organizationId,
    });
    station.nowMs += 1_000;
    await recordRegistryEvent(station, "station_unfrozen", here, { data: {} });
    await recordRegistryEvent(station, "provider_frozen", ["provider_config", 81]);
    await station.do({ type: "intent_cancel", intentId: 1_101 }, station.cashier);
    // Not listed: it begins after the collection.
    await recordRegistryEvent(station, "station_frozen", here);
    expect(await sentencesOf(station, 1_101)).toEqual([
      "no: Ada started to collect EUR 12.50 for order 7 by cash.",
      "no: Olga froze the organization. Reason: The till is short",
      "no: Olga froze the station. Reason: A drill",
      "no: Olga lifted the freeze of the station",
      "no: Ada cancelled the collection.",
    ]);
  });

  test("a freeze of the device, the provider or the platform: the sentence names it and the person who froze it", async () => {
    const station = await world.openStation();
    const { companionId } = station.facts;
    await station.collect(1_201, orderSnapshot(1_201));
    await recordRegistryEvent(station, "device_frozen", ["device", companionId]);
    await recordRegistryEvent(station, "platform_frozen", ["platform", 0]);
    expect((await sentencesOf(station, 1_201)).slice(1)).toEqual([
      "no: Olga froze Renamed terminal. Reason: A drill",
      "no: Night shift froze the platform. Reason: A drill",
    ]);
    await recordRegistryEvent(station, "platform_unfrozen", ["platform", 0]);

    const counter = await world.openStation();
    const provider = { kind: "provider", id: 81 } as const;
    await counter.do({ type: "provider_put", provider: { configId: 81, revision: 1 } }, { kind: "registry", id: 0 });
    const order = orderSnapshot(1_202);
    await counter.do({ type: "intent_create", route: "dynamic_qr", intentId: 1_202, order }, counter.cashier);
    await recordRegistryEvent(counter, "provider_frozen", ["provider_config", 81]);
    await counter.do({ type: "provider_failed", intentId: 1_202, reason: "provider_frozen" }, provider);
    expect(await sentencesOf(counter, 1_202)).toEqual([
      "no: Ada started to collect EUR 12.50 for order 7 by QR code.",
      "no: Olga froze the payment provider. Reason: A drill",
      "no: The collection ended, because the provider is frozen by a kill switch.",
    ]);
  });
});

describe("timeline: names of devices", () => {
  const renamed = (from: string, to: string) => ({ data: { from: { name: from }, to: { name: to } } });

  test("a device that was renamed later: its name when the collection began", async () => {
    const station = await world.openStation();
    const device = ["device", station.facts.companionId] as const;
    await recordRegistryEvent(station, "device_changed", device, renamed("First name", "Second name"));
    station.nowMs += 1_000;
    await station.collect(1_301, orderSnapshot(1_301));
    await recordRegistryEvent(station, "device_changed", device, renamed("Second name", "Third name"));
    station.nowMs += 1_000;
    await recordRegistryEvent(station, "device_changed", device, renamed("Third name", "Renamed terminal"));
    expect((await sentencesOf(station, 1_301))[0]).toContain(" by smart POS on Second name.");
    // After the device has presented the collection, the timeline has its name from the station's commit.
    await station.do({ type: "intent_present", intentId: 1_301 }, station.companion);
    expect((await sentencesOf(station, 1_301))[0]).toContain(" by smart POS on Counter terminal.");
  });

  test("a device that the registry does not know: its id", async () => {
    const station = await world.openStation();
    const { companionId } = station.facts;
    await station.collect(1_401, orderSnapshot(1_401));
    await world.database`delete from devices where device_id = ${companionId}`;
    expect((await sentencesOf(station, 1_401))[0]).toContain(` by smart POS on device ${companionId}.`);
  });
});

test("timeline: a payment with another reference or none: the sentence about it states which", async () => {
  const station = await world.openStation();
  const { organizationId } = world.ownerOf(station);
  const provider = { kind: "provider", id: 81 } as const;
  const intentId = 901;
  await station.do(
    { type: "provider_put", provider: { configId: provider.id, revision: 1 } },
    { kind: "registry", id: 0 },
  );
  await station.do(
    { type: "intent_create", route: "dynamic_qr", intentId, order: orderSnapshot(901) },
    station.cashier,
  );
  const qr = { type: "qr_ready", intentId, qrPayload: "000201", providerReference: "PAY-1" } as const;
  await station.do(qr, provider);
  const differs = { type: "provider_money_differs", intentId, issue: "reference_mismatch", issueId: 1 } as const;
  await station.do(differs, provider, "provider:differs:901");
  const [config] = await world.database<{ config_id: number }[]>`
    insert into provider_configs (organization_id, filial_id, kind, mode, name, settings)
    select organization_id, filial_id, 'emvco_generic', 'test', 'Acquirer', '{}' from filials
    where organization_id = ${organizationId} limit 1 returning config_id`;
  const raise = (reference: string) => world.database`
    insert into issues (organization_id, account_key, config_id, kind, subject_key, intent_id, provider_reference, evidence,
      evidence_hash, money_names)
    values (${organizationId}, ${`provider:${config?.config_id}`}, ${config?.config_id ?? 0}, 'reference_mismatch',
      ${`key:${reference}`}, ${intentId}, ${reference}, '{}', sha256('X'), ${[`name:${reference}`]})`;
  const sentenceOf = async (): Promise<string | undefined> => {
    const { entries } = await world.timelineOf(station, intentId);
    return entries.find(({ type }) => type === "money_differs")?.sentence;
  };
  const expected = (how: string) =>
    `The payment provider asserted money for this collection ${how}; it settled nothing, and an issue names it.`;
  await raise("");
  expect(await sentenceOf()).toBe(
    expected("without a reference, so that it cannot be distinguished from other payments"),
  );
  await raise("PAY-2");
  expect(await sentenceOf()).toBe(expected("under another reference or without one"));
  await world.database`delete from issues where provider_reference = '' and intent_id = ${intentId}`;
  expect(await sentenceOf()).toBe(expected("under another reference"));
});
