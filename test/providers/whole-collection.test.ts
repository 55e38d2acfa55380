/** Whole QR collections over the real actor host, relay, settlement service and sandbox provider. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { decodeCommit } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import * as messages from "../../services/bus/messages/providers.ts";
import { changeOrderLines, getOrder, openOrder } from "../../services/bus/messages/settlement.ts";
import type { RequestedCommand, StationResponse } from "../../services/bus/messages/station.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { STATION_LOG } from "../../services/bus/streams.ts";
import { stationLogSubject } from "../../services/bus/subjects.ts";
import { insertOutbox, stationKey } from "../../services/db/outbox.ts";
import type { Scenario } from "../../services/sandbox-provider/magic-amounts.ts";
import { MAGIC_AMOUNTS } from "../../services/sandbox-provider/magic-amounts.ts";
import { type Place, type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";
import { waitFor } from "./waiting.ts";

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld({ hasRealStations: true });
});
afterAll(() => world.stop());

interface Counter {
  readonly place: Place;
  readonly configId: number;
  readonly orderId: number;
  act(command: RequestedCommand): Promise<StationResponse>;
  state(): Promise<StationState>;
}

/** A station with a config, a leased cashier and an open order of an amount that asks for that scenario. */
async function openCounter(scenario: Scenario): Promise<Counter> {
  const place = await world.openPlace();
  const { stationId, organizationId, filialId, cashier } = place;
  const station = {
    organizationId,
    filialId,
    name: "Counter",
    currency: "EUR",
    status: "active",
    revision: 1,
  } as const;
  await world.database.begin((sql) =>
    insertOutbox(sql, {
      key: stationKey(stationId),
      kind: "station_command",
      stationId,
      actor: { kind: "owner", id: place.owner.userId },
      command: { type: "station_put", stationId, station },
    }),
  );
  const configId = await world.addSandboxConfig(place);
  const act = (command: RequestedCommand) => {
    const actor = { kind: "cashier", id: cashier.userId, name: cashier.name } as const;
    commands += 1;
    return askStation(world.bus.nc, stationId, { commandId: `test:${commands}`, actor, command });
  };
  const state = async (): Promise<StationState> => {
    const message = await world.bus.jsm.streams.getMessage(STATION_LOG.name, {
      last_by_subj: stationLogSubject(stationId),
    });
    if (message === null) throw new Error("The station has no commit.");
    return decodeCommit(message.string()).state;
  };
  await waitFor("the station knows its provider", async () => {
    const response = await act({ type: "lease_acquire" });
    return response.reply.ok && (await state()).provider.configId === configId;
  });
  const ending = MAGIC_AMOUNTS.find((magic) => magic.scenario === scenario)?.ending ?? "50";
  const lines = [{ name: "Soup", quantity: 1, unitAmountMinor: `12${ending}` }];
  const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines });
  return { place, configId, orderId: order.orderId, act, state };
}
let commands = 0;

async function collect(counter: Counter): Promise<number> {
  const { orderId } = counter;
  const { reply } = await counter.act({ type: "intent_create", route: "dynamic_qr", orderId, lifetimeMs: 30_000 });
  if (!reply.ok || reply.type !== "intent") throw new Error(`No intent: ${JSON.stringify(reply)}`);
  return reply.intentId;
}

function ended(counter: Counter, intentId: number): Promise<PaymentIntent> {
  return waitFor(
    "the intent's end",
    async () => (await counter.state()).ended.find((intent) => intent.intentId === intentId),
    15_000,
  );
}

function presented(counter: Counter, intentId: number): Promise<PaymentIntent> {
  return waitFor("the QR", async () => {
    const { intent } = await counter.state();
    return intent?.intentId === intentId && intent.status === "presented" && intent;
  });
}

const orderOf = ({ place, orderId }: Counter) =>
  world.ask(getOrder, { caller: place.cashier, orderId }).then(({ order }) => order);
const issuesOf = ({ place }: Counter) =>
  world.ask(messages.listIssues, { caller: place.operator, limit: 100 }).then(({ issues }) => issues);

describe.concurrent("a QR collection", () => {
  test("is presented, paid by the callback, and settled once through the seam", async () => {
    const counter = await openCounter("duplicate_callback");
    const intentId = await collect(counter);
    const intent = await ended(counter, intentId);
    expect(intent).toMatchObject({ status: "succeeded", attestation: { by: "provider", cashierId: 0 } });
    const order = await orderOf(counter);
    expect(order).toMatchObject({ status: "paid", transaction: { intentId, route: "dynamic_qr" } });
    expect(order.transaction?.reference).toBe(intent.provider?.providerReference);
    expect(await issuesOf(counter)).toEqual([]);
  });

  test.each([
    ["decline", "payment_declined"],
    ["provider_down", "provider_unavailable"],
    ["refuse", "provider_refused"],
    ["garbage", "provider_answer_invalid"],
  ] as const)("%s ends with the reason %s, and the order can be collected again", async (scenario, reason) => {
    const counter = await openCounter(scenario);
    const intent = await ended(counter, await collect(counter));
    expect(intent).toMatchObject({ status: "cancelled", endReason: reason });
    expect((await orderOf(counter)).status).toBe("open");
    const { reply } = await counter.act({ type: "intent_create", route: "cash", orderId: counter.orderId });
    expect(reply).toMatchObject({ ok: true });
  });

  test("early_callback: money that overtakes the QR pays", async () => {
    const counter = await openCounter("early_callback");
    expect(await ended(counter, await collect(counter))).toMatchObject({ status: "succeeded" });
    expect(await issuesOf(counter)).toEqual([]);
  });

  test("a cancelled one leaves a doubt until the provider has said that no money moved", async () => {
    const counter = await openCounter("never_pays");
    const intentId = await collect(counter);
    await presented(counter, intentId);
    await counter.act({ type: "intent_cancel", intentId });
    await waitFor("no doubt", async () => {
      const state = await counter.state();
      return state.intent === null && state.doubts.length === 0;
    });
    const told = world.stations.about(intentId).map(({ command }) => command.type);
    expect(told).toContain("provider_cleared");
  });

  test("late money is named, pays nothing by itself, and pays when an operator attributes it", async () => {
    const counter = await openCounter("late_success");
    const intentId = await collect(counter);
    await presented(counter, intentId);
    await counter.act({ type: "intent_cancel", intentId });
    const [issue] = await waitFor("an issue", async () => {
      const issues = await issuesOf(counter);
      return issues.length > 0 && issues;
    });
    expect(issue).toMatchObject({ kind: "late_money", intentId, orderId: counter.orderId });
    expect((await orderOf(counter)).status).toBe("open");
    const again = await counter.act({ type: "intent_create", route: "cash", orderId: counter.orderId });
    expect(again.reply).toMatchObject({ ok: false, code: "money_may_have_moved", earlierIntentId: intentId });
    const { operator: caller } = counter.place;
    const asked = { caller, issueId: issue?.issueId ?? 0, orderId: counter.orderId, reason: "the guest has a receipt" };
    await world.ask(messages.attributeIssue, asked);
    expect(await orderOf(counter)).toMatchObject({
      status: "paid",
      transaction: { reference: issue?.providerReference },
    });
    await waitFor("no doubt", async () => (await counter.state()).doubts.length === 0);
    expect(await issuesOf(counter)).toHaveLength(1);
  });

  test("money for an order that has changed is refused by the seam, named, and settled by the cashier after mending", async () => {
    const counter = await openCounter("never_pays");
    const intentId = await collect(counter);
    const intent = await presented(counter, intentId);
    const { place, orderId } = counter;
    const change = (unitAmountMinor: string) =>
      world.ask(changeOrderLines, {
        caller: place.cashier,
        orderId,
        lines: [{ name: "Soup", quantity: 1, unitAmountMinor }],
      });
    await change("1300");
    await fetch(intent.provider?.qrPayload ?? "", { method: "POST", body: "decision=approve" });
    const [issue] = await waitFor("an issue", async () => {
      const issues = await issuesOf(counter);
      return issues.length > 0 && issues;
    });
    expect(issue).toMatchObject({ kind: "settlement_refused", intentId });
    expect((await orderOf(counter)).status).toBe("open");
    await change(intent.amountMinor);
    const { reply } = await counter.act({ type: "intent_attest", intentId });
    expect(reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(await orderOf(counter)).toMatchObject({ status: "paid", transaction: { intentId } });
    // Before the issue is closed by itself, and afterwards too, the operator cannot spend the same money again.
    const other = await world.ask(openOrder, {
      caller: place.cashier,
      stationId: place.stationId,
      lines: [{ name: "Soup", quantity: 1, unitAmountMinor: intent.amountMinor }],
    });
    const asked = { caller: place.operator, issueId: issue?.issueId ?? 0, orderId: other.order.orderId, reason: "x" };
    await expect(world.ask(messages.attributeIssue, asked)).rejects.toMatchObject({ refusal: { code: "conflict" } });
    const [closed] = await waitFor("the issue is closed", async () => {
      const issues = await issuesOf(counter);
      return issues[0]?.status === "closed" && issues;
    });
    const { transaction } = await orderOf(counter);
    expect(closed).toMatchObject({ transactionId: transaction?.transactionId, resolvedBy: null });
    await expect(world.ask(messages.attributeIssue, asked)).rejects.toMatchObject({ refusal: { code: "conflict" } });
  });
});
