/** A provider that does not answer, or many callbacks with wrong signatures, does not delay the payments of others. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { receiveCallback } from "../../services/bus/messages/callbacks.ts";
import { createProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import { call } from "../../services/bus/operation.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { type AnsweringProvider, startAnsweringProvider } from "./answering-provider.ts";
import { paidBody, sendCallback } from "./emvco-callback.ts";
import { Scenes, SECRET } from "./emvco-scene.ts";
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

/** More than the requests that one process of a service works on at once. */
const WRONG_AT_ONCE = 400;
const BURSTS = 12;

describe("bursts of callbacks with wrong signatures", () => {
  let sent = 0;

  /** Sends a callback from a new address, for the existing config or for an unknown one. */
  async function sendWrong(existingId: number): Promise<void> {
    sent += 1;
    const configId = sent % 3 === 0 ? 5_000_000 + sent : existingId;
    const address = `2001:db8:${(sent >> 8).toString(16)}:${(sent & 0xff).toString(16)}::1`;
    const headers = sent % 2 === 0 ? {} : { "x-provider-signature": `t=1790000000,v1=${"0".repeat(64)}` };
    const request = { configId, headers, bodyBase64: "e30=", address };
    await call(world.bus.nc, receiveCallback, request, 10_000).catch((error: unknown) => {
      if (!(error instanceof RefusedError)) throw error;
    });
  }

  it("valid callbacks during them, for the same config and for another one: accepted", async () => {
    const [flooded, other] = await Promise.all([scenes.open(), scenes.open()]);
    const sendRight = async (nth: number): Promise<void> => {
      const { configId } = nth % 2 === 0 ? flooded : other;
      const data = { reference: `unknown-${nth}`, transaction_id: `T-${nth}`, amount: "12.50", currency: "EUR" };
      expect((await sendCallback(world, { configId, body: paidBody(data), secret: SECRET })).status).toBe(200);
    };
    // The process has read both configs before the bursts begin.
    await Promise.all([0, 1].map(sendRight));
    for (let burst = 2; burst < BURSTS; burst += 1) {
      const wrong = Array.from({ length: WRONG_AT_ONCE }, () => sendWrong(flooded.configId));
      await sendRight(burst);
      await Promise.all(wrong);
    }
    const [{ recorded }] = await world.database<[{ recorded: number }]>`
      select count(*) as recorded from provider_callback_refusals`;
    const { refusalsRecorded, unknownRefusalsRecorded } = PROVIDER_LIMITS;
    expect(recorded).toBeLessThanOrEqual(refusalsRecorded + unknownRefusalsRecorded);
  });
});

const OPEN_QRS = 300;

/** The last group, because its unanswered requests stay open until the end. */
describe("a silent provider", () => {
  let healthy: { place: Place; configId: number };
  let silent: { place: Place; configId: number };

  beforeAll(async () => {
    const [healthyPlace, silentPlace] = await Promise.all([world.openPlace(), world.openPlace()]);
    healthy = { place: healthyPlace, configId: await world.addSandboxConfig(healthyPlace) };
    silent = { place: silentPlace, configId: await world.addSandboxConfig(silentPlace) };
    await answerOneAccount({ world, provider }, healthy.configId);
  });

  it("does not delay the polls, confirmations and new QRs of other providers", async () => {
    await openDueQrs(world, silent, { count: OPEN_QRS });
    for (let asked = 0; asked < OPEN_QRS; asked += 1) void askSilent(silent);
    await expectNoDelay({ world, provider, scenes }, healthy);
  });
});

let drawn = 8_000_000;

async function askSilent({ place, configId }: { place: Place; configId: number }): Promise<unknown> {
  const { organizationId, stationId } = place;
  const request = { organizationId, stationId, configId, orderDisplayNumber: 1, amountMinor: "6660", currency: "EUR" };
  const more = { intentId: (drawn += 1), expiresAtMs: Date.now() + 60_000 };
  return await call(world.bus.nc, createProviderPayment, { ...request, ...more }, 15_000).catch(() => undefined);
}
