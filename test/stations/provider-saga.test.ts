import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { EndReason, PaymentIntent, ProviderEndReason } from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { requestIdOf } from "../../services/bus/deadline.ts";
import { createProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import { SWITCHES } from "../../services/bus/streams.ts";
import { forRequest } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { eventually } from "../support/wait-for.ts";
import {
  type Answer,
  type Question,
  qrOf,
  type ScriptedProviders,
  startScriptedProviders,
} from "./scripted-providers.ts";
import { findIntent, PROVIDER, REGISTRY, type StationWorld, startStationWorld } from "./station-world.ts";

describe("the provider saga", () => {
  let world: StationWorld;
  let settlement: Service;
  const running: ScriptedProviders[] = [];
  beforeAll(async () => {
    world = await startStationWorld({ money: true });
    settlement = await world.startSettlement();
  });
  afterEach(async () => {
    await world.stopHosts();
    await Promise.all(running.splice(0).map((providers) => providers.stop()));
  });
  afterAll(async () => {
    await settlement.stop();
    await world.stop();
  });

  const script = async (answer?: (question: Question) => Answer | Promise<Answer>): Promise<ScriptedProviders> => {
    const providers = await startScriptedProviders(world, answer);
    running.push(providers);
    return providers;
  };
  const pick = async (stationId: number): Promise<PaymentIntent> => {
    const orderId = await world.openOrder(stationId);
    const { intent, reply } = await world.ask(stationId, { type: "intent_create", route: "dynamic_qr", orderId });
    if (intent === null) throw new Error(`No intent: ${JSON.stringify(reply)}`);
    return intent;
  };
  const isEventually = async (
    stationId: number,
    intentId: number,
    status: string,
    withinMs?: number,
  ): Promise<number> =>
    await eventually(async () => (await findIntent(world, stationId, intentId))?.status === status, withinMs);
  const endReason = async (stationId: number, intentId: number): Promise<EndReason | ""> => {
    await isEventually(stationId, intentId, "cancelled", STATION_LIMITS.providerWaitMs + 15_000);
    return (await findIntent(world, stationId, intentId))?.endReason ?? "";
  };

  /** Removes the switch from the bucket, as if it had never been on. The relay's notice of completeness stays. */
  const removeSwitch = async (key: string): Promise<void> => {
    await world.bus.jsm.streams.purge(`KV_${SWITCHES.name}`, { filter: `$KV.${SWITCHES.name}.${key}` });
  };

  it("asks the provider once, with the order's data, and presents the QR with the provider as the actor", async () => {
    const providers = await script();
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId, expiresAtMs, orderDisplayNumber } = await pick(stationId);
    await isEventually(stationId, intentId, "presented");
    expect(providers.questions).toEqual([
      {
        intentId,
        stationId,
        organizationId: 1,
        configId: PROVIDER.id,
        orderDisplayNumber,
        amountMinor: "1250",
        currency: "EUR",
        expiresAtMs,
      },
    ]);
    const commit = await world.newest(stationId);
    expect(commit.actor).toEqual(PROVIDER);
    expect(commit.events).toEqual([{ type: "qr_presented", intentId, providerReference: `PAY-${intentId}` }]);
    expect(commit.state.intent?.provider?.qrPayload).toBe(`000201-QR-${intentId}`);
  });

  it("the provider refuses: the collection ends with its reason, and another one can begin", async () => {
    const reasons: ProviderEndReason[] = ["provider_refused", "provider_timed_out"];
    const providers = await script(({ intentId }) => {
      const reason = reasons.shift();
      return reason === undefined ? qrOf(intentId) : { created: false, reason };
    });
    await world.startHost();
    const stationId = await world.openQrStation();
    for (const reason of ["provider_refused", "provider_timed_out"]) {
      const { intentId } = await pick(stationId);
      expect(await endReason(stationId, intentId)).toBe(reason);
      await eventually(() => providers.withdrawn.includes(intentId));
    }
    const { intentId } = await pick(stationId);
    await isEventually(stationId, intentId, "presented");
  });

  it.each([
    ["an empty", ""],
    ["a too long", "0".repeat(STATE_LIMITS.qrPayloadCharacters + 1)],
  ])("%s payload: the collection ends as provider_answer_invalid", async (_what, qrPayload) => {
    await script(() => ({ created: true, qrPayload, providerReference: "PAY-1" }));
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId } = await pick(stationId);
    expect(await endReason(stationId, intentId)).toBe("provider_answer_invalid");
  });

  it("the providers service starts late and then fails twice: the host asks again until the QR is there", async () => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId } = await pick(stationId);
    await pause(200);
    let failuresLeft = 2;
    const providers = await script(() => {
      failuresLeft -= 1;
      if (failuresLeft >= 0) throw new Error("not yet");
      return qrOf(intentId);
    });
    await isEventually(stationId, intentId, "presented");
    expect(providers.questions).toHaveLength(3);
  });

  it("no answer from the providers service: the collection ends as provider_unavailable", async () => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const startedAt = performance.now();
    const { intentId } = await pick(stationId);
    expect(await endReason(stationId, intentId)).toBe("provider_unavailable");
    expect(performance.now() - startedAt).toBeGreaterThan(STATION_LIMITS.providerWaitMs - 1_000);
    expect((await world.newest(stationId)).actor.kind).toBe("system");
  });

  it("the provider is frozen after the collection began: the host does not ask it", async () => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId } = await pick(stationId);
    await world.stopHosts();
    await world.bus.js.publish(`$KV.${SWITCHES.name}.provider.${PROVIDER.id}`, "{}");
    try {
      const providers = await script();
      await world.startHost();
      expect(await endReason(stationId, intentId)).toBe("provider_frozen");
      expect(providers.questions).toEqual([]);
    } finally {
      await removeSwitch(`provider.${PROVIDER.id}`);
    }
  });

  it.each([
    ["platform_frozen", () => "platform"],
    ["organization_frozen", () => "organization.1"],
    ["station_frozen", (stationId: number) => `station.${stationId}`],
  ] as const)("%s after the collection began: the host does not ask the provider", async (reason, keyOf) => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId } = await pick(stationId);
    await world.stopHosts();
    await world.bus.js.publish(`$KV.${SWITCHES.name}.${keyOf(stationId)}`, "{}");
    try {
      const providers = await script();
      await world.startHost();
      expect(await endReason(stationId, intentId)).toBe(reason);
      expect(providers.questions).toEqual([]);
      expect((await world.newest(stationId)).actor.kind).toBe("system");
    } finally {
      await removeSwitch(keyOf(stationId));
    }
  });

  it("a switch is turned on while the provider is asked: the end reason names that switch", async () => {
    try {
      // For every switch, the providers service answers provider_frozen.
      await script(async () => {
        await world.bus.js.publish(`$KV.${SWITCHES.name}.platform`, "{}");
        await pause(500);
        return { created: false, reason: "provider_frozen" };
      });
      await world.startHost();
      const stationId = await world.openQrStation();
      const { intentId } = await pick(stationId);
      expect(await endReason(stationId, intentId)).toBe("platform_frozen");
    } finally {
      await removeSwitch("platform");
    }
  });

  it("the station is suspended before the provider is asked: the collection ends as station_suspended", async () => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId } = await pick(stationId);
    const { organizationId, filialId, name, currency } = (await world.newest(stationId)).state;
    const station = { organizationId, filialId, name, currency, status: "suspended", revision: 9 } as const;
    await world.ask(stationId, { type: "station_put", stationId, station }, { actor: REGISTRY });
    expect(await endReason(stationId, intentId)).toBe("station_suspended");
  });

  it("the host is killed before the answer: the next host asks again, under the request id of the creation", async () => {
    let isHeld = true;
    const providers = await script(async ({ intentId }) => {
      if (isHeld) await new Promise(() => undefined);
      return qrOf(intentId);
    });
    const killed = await world.startHostProcess();
    const stationIds = await Promise.all(Array.from({ length: 4 }, () => world.openQrStation()));
    const intents = await Promise.all(
      stationIds.map((stationId) =>
        forRequest(`request-${stationId}`, async () => ({ stationId, ...(await pick(stationId)) })),
      ),
    );
    await eventually(() => providers.questions.length === 4);
    await killed.kill9();
    isHeld = false;
    const requestIds = new Map<number, string | undefined>();
    const subscription = world.bus.nc.subscribe(createProviderPayment.subject, {
      callback: (_, message) => void requestIds.set(message.json<Question>().intentId, requestIdOf(message)),
    });
    await world.startHost();
    // No command comes. The host finds the open requests without one.
    for (const { stationId, intentId } of intents) await isEventually(stationId, intentId, "presented");
    subscription.unsubscribe();
    for (const { stationId, intentId } of intents) {
      expect(requestIds.get(intentId)).toBe(`request-${stationId}`);
      expect((await findIntent(world, stationId, intentId))?.provider?.requestId, "the QR is there").toBeUndefined();
      expect(providers.questions.filter((question) => question.intentId === intentId)).toHaveLength(2);
    }
  });

  it("a hand-over before the answer: the next host asks again, and the first answer changes nothing", async () => {
    const held: (() => void)[] = [];
    const providers = await script(async ({ intentId }) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return qrOf(intentId);
    });
    const first = await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId } = await pick(stationId);
    await eventually(() => held.length === 1);
    const startedAt = performance.now();
    await first.stop();
    expect(performance.now() - startedAt, "a hand-over does not wait for a provider").toBeLessThan(2_000);
    await world.startHost();
    await eventually(() => held.length === 2);
    for (const release of held) release();
    await isEventually(stationId, intentId, "presented");
    const events = (await world.commits(stationId)).flatMap((commit) => commit.events.map((event) => event.type));
    expect(events.filter((type) => type === "qr_presented")).toHaveLength(1);
    expect(providers.questions).toHaveLength(2);
  });

  it("an answer after a cancellation: ignored, and the providers service receives the withdrawal", async () => {
    const held: (() => void)[] = [];
    const providers = await script(async ({ intentId }) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return qrOf(intentId);
    });
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId } = await pick(stationId);
    await eventually(() => held.length === 1);
    await world.ask(stationId, { type: "intent_cancel", intentId });
    await eventually(() => providers.withdrawn.includes(intentId));
    for (const release of held) release();
    await pause(100);
    expect(await findIntent(world, stationId, intentId)).toMatchObject({
      status: "cancelled",
      presentedAtMs: null,
      endReason: "",
    });
  });

  it("a cancellation and an expiry are reported, again until the service answers; a success is not reported", async () => {
    const stopped = await script();
    await world.startHost();
    const [cancelled, expired] = [await world.openQrStation(), await world.openQrStation()];
    const first = await pick(cancelled);
    await isEventually(cancelled, first.intentId, "presented");
    const orderId = await world.openOrder(expired);
    const second = await world.ask(expired, { type: "intent_create", route: "dynamic_qr", orderId, lifetimeMs: 2_000 });
    await isEventually(expired, second.intent?.intentId ?? 0, "presented");
    await stopped.stop();
    await world.ask(cancelled, { type: "intent_cancel", intentId: first.intentId });
    // The host cannot check now whether the provider has confirmed in time, so the QR stays after its deadline.
    await eventually(() => Date.now() > (second.intent?.expiresAtMs ?? 0) + 300);
    await isEventually(expired, second.intent?.intentId ?? 0, "presented");
    const providers = await script();
    await isEventually(expired, second.intent?.intentId ?? 0, "expired");
    await eventually(() => providers.withdrawn.length === 2);
    expect([...providers.withdrawn].toSorted((a, b) => a - b)).toEqual([first.intentId, second.intent?.intentId]);
    const paid = await pick(cancelled).catch(() => undefined);
    expect(paid, "the new order is not unclear").toBeDefined();
    await isEventually(cancelled, paid?.intentId ?? 0, "presented");
    const confirm = { type: "provider_confirm", intentId: paid?.intentId ?? 0, providerReference: "PAY-9" } as const;
    await world.ask(cancelled, confirm, { actor: PROVIDER });
    await isEventually(cancelled, paid?.intentId ?? 0, "succeeded");
    await pause(200);
    expect(providers.withdrawn).toHaveLength(2);
  });
});
