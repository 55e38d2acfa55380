/** A host reports each unpaid end of its stations' QR collections, also an end from before it took over the station. */

import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { requestIdOf } from "../../services/bus/deadline.ts";
import { withdrawProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import { forRequest } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import { eventually } from "../support/wait-for.ts";
import { type ScriptedProviders, startScriptedProviders } from "./scripted-providers.ts";
import { PROVIDER, type StationWorld, startStationWorld } from "./station-world.ts";

/** The longest time from a host's take-over to its report. A restart of the providers service is not part of it. */
const REPORTED_WITHIN_MS = 5_000;

describe("the end of a QR collection", () => {
  let world: StationWorld;
  let settlement: Service;
  let providers: ScriptedProviders;
  beforeAll(async () => {
    world = await startStationWorld({ money: true });
    settlement = await world.startSettlement();
  });
  afterEach(async () => {
    await world.stopHosts();
    await providers.stop();
  });
  afterAll(async () => {
    await settlement.stop();
    await world.stop();
  });

  /** A station whose QR is shown, with its order. */
  const present = async () => {
    const stationId = await world.openQrStation();
    const orderId = await world.openOrder(stationId);
    const { intent } = await world.ask(stationId, { type: "intent_create", route: "dynamic_qr", orderId });
    const intentId = intent?.intentId ?? 0;
    await eventually(async () => (await world.newest(stationId)).state.intent?.status === "presented");
    return { stationId, intentId, orderId };
  };
  const unreported = async (stationId: number) => (await world.newest(stationId)).state.unreportedEnds;

  it("the host is killed before the report: the next host reports it, under the request id of the cancellation", async () => {
    providers = await startScriptedProviders(world);
    const first = await world.startHostProcess();
    const cancelled = await present();
    await providers.stop();
    const { stationId, intentId } = cancelled;
    await forRequest("the cancellation", () => world.ask(stationId, { type: "intent_cancel", intentId }));
    expect(await unreported(cancelled.stationId)).toEqual([cancelled.intentId]);
    await first.kill9();
    expect(await unreported(cancelled.stationId)).toEqual([cancelled.intentId]);
    providers = await startScriptedProviders(world);
    await pause(100);
    expect(providers.withdrawn, "no host runs that could report it").toEqual([]);
    const requestIds: (string | undefined)[] = [];
    const subscription = world.bus.nc.subscribe(withdrawProviderPayment.subject, {
      callback: (_, message) => void requestIds.push(requestIdOf(message)),
    });
    await world.startHostProcess();
    const startedAtMs = performance.now();
    const isReported = () => providers.withdrawn.includes(cancelled.intentId);
    await eventually(isReported, 3 * (STATION_LIMITS.takeOverMs + REPORTED_WITHIN_MS));
    expect(performance.now() - startedAtMs).toBeLessThan(STATION_LIMITS.takeOverMs + REPORTED_WITHIN_MS);
    await eventually(async () => (await unreported(cancelled.stationId)).length === 0);
    await pause(500);
    expect(providers.withdrawn, "after it is recorded it is not reported again").toEqual([cancelled.intentId]);
    subscription.unsubscribe();
    expect(requestIds).toEqual(["the cancellation"]);
  });

  it("the bus loses the station before the reports of two ends: each is reported once", async () => {
    providers = await startScriptedProviders(world);
    await world.startHost();
    const { stationId, intentId, orderId } = await present();
    const cancel = (id: number) => world.ask(stationId, { type: "intent_cancel", intentId: id });
    await providers.stop();
    await cancel(intentId);
    const collect = { type: "intent_create", route: "dynamic_qr", orderId, confirmsMoneyMayHaveMoved: true } as const;
    const next = (await world.ask(stationId, collect)).intent?.intentId ?? 0;
    await cancel(next);
    expect(await unreported(stationId)).toEqual([intentId, next]);
    await world.bus.jsm.streams.purge(STATION_LOG.name, { filter: stationLogSubject(stationId) });
    providers = await startScriptedProviders(world);
    await eventually(() => providers.withdrawn.includes(next), 2 * STATION_LIMITS.withdrawLongestPauseMs);
    await pause(500);
    expect(providers.withdrawn).toEqual([intentId, next]);
  });

  it("because its order was paid in another way: is reported", async () => {
    providers = await startScriptedProviders(world);
    await world.startHost();
    const { stationId, intentId, orderId } = await present();
    const inquire = { type: "order_inquire", orderId } as const;
    const active = await world.ask(stationId, inquire, { actor: PROVIDER });
    expect(active.reply).toEqual({ ok: false, code: "collection_active", status: "presented" });
    const order = {
      orderId,
      orderDisplayNumber: 1,
      amountMinor: "1250",
      currency: "EUR",
      status: "paid",
      revision: 9,
    } as const;
    await world.ask(stationId, { type: "order_put", order }, { actor: { kind: "settlement", id: 0 } });
    expect((await world.ask(stationId, inquire, { actor: PROVIDER })).reply.ok).toBe(true);
    await eventually(() => providers.withdrawn.includes(intentId));
    const { ended } = (await world.newest(stationId)).state;
    expect(ended[0]).toMatchObject({ intentId, status: "cancelled", endReason: "order_already_paid" });
  });

  it("after a report of a differing payment: that reason stays, and the next collection needs a confirmation", async () => {
    providers = await startScriptedProviders(world);
    await world.startHost();
    const { stationId, intentId, orderId } = await present();
    const differs = { type: "provider_money_differs", intentId, issue: "amount_mismatch", issueId: 1 } as const;
    const sent = { actor: PROVIDER, commandId: `provider:differs:${intentId}` };
    expect((await world.ask(stationId, differs, sent)).reply.ok).toBe(true);
    const { version } = await world.newest(stationId);
    expect((await world.ask(stationId, differs, sent)).reply.ok).toBe(true);
    expect((await world.newest(stationId)).version, "a second report changes nothing").toBe(version);
    const expired = { type: "provider_failed", intentId, reason: "provider_expired" } as const;
    await world.ask(stationId, expired, { actor: PROVIDER });
    const again = await world.ask(stationId, { type: "intent_create", route: "cash", orderId });
    const named = { reason: "money_differs", earlierIntentId: intentId };
    expect(again.reply).toMatchObject({ ok: false, code: "money_may_have_moved", ...named });
  });

  it("of 12 intents while the providers service is stopped: each is reported after its start", async () => {
    providers = await startScriptedProviders(world);
    await world.startHost();
    const made = await Promise.all(Array.from({ length: 12 }, present));
    await providers.stop();
    await Promise.all(made.map(({ stationId, intentId }) => world.ask(stationId, { type: "intent_cancel", intentId })));
    providers = await startScriptedProviders(world);
    await eventually(() => providers.withdrawn.length >= made.length, 2 * STATION_LIMITS.withdrawLongestPauseMs);
    await eventually(
      async () => (await Promise.all(made.map((each) => unreported(each.stationId)))).flat().length === 0,
    );
  });
});
