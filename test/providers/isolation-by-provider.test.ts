/** A provider that does not answer, with configs in several filials, does not delay other providers' payments. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import { call } from "../../services/bus/operation.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { waitFor } from "../support/wait-for.ts";
import { type AnsweringProvider, startAnsweringProvider } from "./answering-provider.ts";
import { Scenes } from "./emvco-scene.ts";
import { type Place, type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";
import { answerOneAccount, expectNoDelay, openDueQrs } from "./silent-account.ts";

let world: ProvidersWorld;
let provider: AnsweringProvider;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  [provider, world] = await Promise.all([startAnsweringProvider(), startProvidersWorld()]);
});
afterAll(async () => {
  // This ends the unanswered requests. Otherwise the service would wait for them before it stops.
  await provider.stop();
  await world.stop();
});

const FILIALS = 8;
const MANY_FILIALS = 40;
const OPEN_QRS = 50;

describe("a silent provider", () => {
  let healthy: { place: Place; configId: number };
  const silent: { place: Place; configId: number }[] = [];

  beforeAll(async () => {
    const healthyPlace = await world.openPlace();
    healthy = { place: healthyPlace, configId: await world.addSandboxConfig(healthyPlace) };
    for (let nth = 0; nth < MANY_FILIALS; nth += 1) silent.push(await openSilent());
    await answerOneAccount({ world, provider }, healthy.configId);
  });

  it("with configs in 8 filials: another account of its server, which gets answers, has its QR and its payment", async () => {
    for (const [nth, account] of silent.slice(0, FILIALS).entries())
      await openDueQrs(world, account, { count: OPEN_QRS, nth });
    const asked = silent
      .slice(0, FILIALS)
      .flatMap((config) => Array.from({ length: OPEN_QRS }, () => askSilent(config)));
    await expectNoDelay({ world, provider, scenes }, healthy);
    await Promise.all(asked);
  });

  it("with requests of 40 filials for all slots and places: another provider's QR is made within 2 s", async () => {
    const { creationsAtOnce, creationsWaiting } = PROVIDER_LIMITS;
    const place = await world.openPlace();
    const configId = await scenes.openConfig(place);
    let answered = 0;
    const perConfig = Math.ceil((creationsAtOnce + creationsWaiting) / silent.length) + 1;
    for (const config of silent)
      for (let asked = 0; asked < perConfig; asked += 1) void askSilent(config).then(() => (answered += 1));
    await waitFor("silent requests that get no place to wait", () => answered >= silent.length / 2);

    const startedAtMs = performance.now();
    const qrs = [1, 2, 3].map(async () => {
      const intent = await world.openIntent(place, 1250);
      return await world.askProvider(place, configId, intent);
    });
    for (const answer of await Promise.all(qrs)) expect(answer).toMatchObject({ created: true });
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
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
