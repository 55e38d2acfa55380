/** One provider that does not answer, with a config in each of several filials, takes nothing from others' payments. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import { call } from "../../services/bus/operation.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { type AnsweringProvider, type Asked, startAnsweringProvider } from "./answering-provider.ts";
import { Scenes } from "./emvco-scene.ts";
import { type Place, type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";
import { waitFor } from "./waiting.ts";

let world: ProvidersWorld;
let provider: AnsweringProvider;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  [provider, world] = await Promise.all([startAnsweringProvider(), startProvidersWorld()]);
});
afterAll(async () => {
  provider.answer = () => ({});
  await world.stop();
  await provider.stop();
});

/** An order of this amount belongs to the provider that gives no answer. */
const SILENT_AMOUNT = "66.60";
const FILIALS = 8;
const MANY_FILIALS = 40;
const OPEN_QRS = 50;

let healthyAccount = "";
const created = new Map<string, Readonly<Record<string, unknown>>>();

function answerAllButTheSilent({ method, path, body }: Asked): object | Promise<object> {
  if (path.includes("silent") || body["amount"] === SILENT_AMOUNT) return new Promise(() => undefined);
  if (method === "GET") return { ...created.get(path.split("/").at(-1) ?? ""), status: "paid" };
  const { reference, amount, currency } = body;
  const payment = {
    payment_id: `p-${String(reference)}`,
    reference,
    account: healthyAccount,
    amount,
    currency,
    status: "pending",
  };
  created.set(String(reference), payment);
  return { ...payment, qr_payload: "QR" };
}

/** Due questions about QRs that are open, as an hour of a provider that is down leaves them. */
async function openDueQrs(place: Place, configId: number, nth: number): Promise<void> {
  await world.database`
    with numbers as (select generate_series(1, ${OPEN_QRS}) as n),
    opened as (
      insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
        account, amount_minor, currency, expires_at, status, asked_until, provider_reference, qr_payload)
      select ${9_000_000 + nth * 1_000} + n, ${configId}, ${place.organizationId}, ${place.stationId}, 1, ${`silent-${nth}-`} || n,
        'A-silent', 6660, 'EUR', now() + interval '1 hour', 'ready', now(), ${`silent-${nth}-`} || n, 'QR'
      from numbers returning intent_id
    )
    insert into provider_tasks (intent_id, kind, due_at) select intent_id, 'poll', now() - interval '1 minute' from opened`;
}

describe("a provider that does not answer", () => {
  let healthy: { place: Place; configId: number };
  const silent: { place: Place; configId: number }[] = [];

  beforeAll(async () => {
    const healthyPlace = await world.openPlace();
    healthy = { place: healthyPlace, configId: await world.addSandboxConfig(healthyPlace) };
    for (let nth = 0; nth < MANY_FILIALS; nth += 1) silent.push(await openSilent());
    const [row] = await world.database<[{ account: string }]>`
      select settings ->> 'account' as account from provider_configs where config_id = ${healthy.configId}`;
    healthyAccount = row.account;
    provider.answer = answerAllButTheSilent;
    await provider.takeOver(world);
  });

  it("with a config in each of 8 filials: an account of its server that is answered gets its QR and its payment", async () => {
    for (const [nth, { place, configId }] of silent.slice(0, FILIALS).entries()) await openDueQrs(place, configId, nth);
    const asked = silent
      .slice(0, FILIALS)
      .flatMap((config) => Array.from({ length: OPEN_QRS }, () => askSilent(config)));
    await waitFor("silent questions under way", () => provider.asked.length >= 8);

    const startedAtMs = performance.now();
    const intent = await world.openIntent(healthy.place, 1203);
    world.stations.collect(intent);
    expect(await world.askProvider(healthy.place, healthy.configId, intent)).toMatchObject({ created: true });
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);

    await world.database`
      update provider_tasks set due_at = now() where intent_id = ${intent.intentId} and kind = 'poll'`;
    const dueAtMs = performance.now();
    await waitFor("the confirmed payment", async () => (await scenes.salesOf(intent)).length === 1, 20_000);
    expect(performance.now() - dueAtMs).toBeLessThan(2_000);
    await Promise.all(asked);
  });

  it("with more configs than it has slots: another provider's QR is made at once", async () => {
    const { creationsAtOnce, creationsWaiting } = PROVIDER_LIMITS;
    const place = await world.openPlace();
    const configId = await scenes.openConfig(place);
    let answered = 0;
    const perConfig = Math.ceil((creationsAtOnce + creationsWaiting) / silent.length) + 1;
    const asked = silent.flatMap((config) =>
      Array.from({ length: perConfig }, () => askSilent(config).then(() => (answered += 1))),
    );
    await waitFor("silent requests that get no place to wait", () => answered >= silent.length / 2);

    const startedAtMs = performance.now();
    const qrs = [1, 2, 3].map(async () => {
      const intent = await world.openIntent(place, 1250);
      return await world.askProvider(place, configId, intent);
    });
    for (const answer of await Promise.all(qrs)) expect(answer).toMatchObject({ created: true });
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
    await Promise.all(asked);
  });
});

async function openSilent(): Promise<{ place: Place; configId: number }> {
  const place = await world.openPlace();
  return { place, configId: await world.addSandboxConfig(place) };
}

async function askSilent({ place, configId }: { place: Place; configId: number }): Promise<unknown> {
  const { organizationId, stationId } = place;
  const intentId = await drawIntentId();
  const request = { intentId, organizationId, stationId, configId, orderDisplayNumber: 1, amountMinor: "6660" };
  const more = { currency: "EUR", expiresAtMs: Date.now() + 60_000 };
  return await call(world.bus.nc, createProviderPayment, { ...request, ...more }, 15_000).catch(() => undefined);
}

let drawn = 8_000_000;
const drawIntentId = (): Promise<number> => Promise.resolve((drawn += 1));
