/** Money without a reference of its own, which is not the same as money under another one. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { getIntentTimeline } from "../../services/bus/messages/timelines.ts";
import { type AuditWorld, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

test("a timeline says whether the provider's money had another reference, or none", async () => {
  const station = await (await world.newStation()).open();
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
    insert into provider_issues (organization_id, config_id, kind, money_key, intent_id, provider_reference, evidence,
      money_names)
    values (${organizationId}, ${config?.config_id ?? 0}, 'reference_mismatch', ${`key:${reference}`}, ${intentId},
      ${reference}, '{}', ${[`name:${reference}`]})`;
  const told = async (): Promise<string | undefined> => {
    const { entries } = await world.ask(getIntentTimeline, { caller: world.ownerOf(station), intentId });
    return entries.find(({ type }) => type === "money_differs")?.sentence;
  };
  const sentence = (how: string) =>
    `The payment provider asserted money for this collection ${how}; it settled nothing, and an issue names it.`;
  await raise("");
  expect(await told()).toBe(
    sentence("without a reference of its own, so that it cannot be distinguished from other payments"),
  );
  await raise("PAY-2");
  expect(await told()).toBe(sentence("under another reference or without one of its own"));
  await world.database`delete from provider_issues where provider_reference = '' and intent_id = ${intentId}`;
  expect(await told()).toBe(sentence("under another reference"));
});
