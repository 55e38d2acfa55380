import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { requestIdOf } from "../../services/bus/deadline.ts";
import { settleIntent } from "../../services/bus/messages/intents.ts";
import { call } from "../../services/bus/operation.ts";
import { UnavailableError } from "../../services/bus/refusals.ts";
import { forRequest } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { eventually } from "../support/wait-for.ts";
import { persist, type StationWorld, startStationWorld } from "./station-world.ts";

describe("the settlement saga", () => {
  let world: StationWorld;
  let settlement: Service;
  beforeAll(async () => {
    world = await startStationWorld({ money: true });
  });
  afterEach(async () => {
    await settlement.stop();
    await world.stopHosts();
  });
  afterAll(() => world.stop());

  /** Creates a cash collection. Each call for the same order is the same command. */
  const createCash = async (stationId: number, orderId: number): Promise<number> => {
    const command = { type: "intent_create", route: "cash", orderId } as const;
    const { intent, reply } = await world.ask(stationId, command, { commandId: `create:7:${orderId}` });
    if (intent === null || intent === undefined) throw new Error(`Not created: ${JSON.stringify(reply)}`);
    return intent.intentId;
  };
  const cashIntent = async (stationId: number): Promise<{ intentId: number; orderId: number }> => {
    const orderId = await world.openOrder(stationId);
    return { intentId: await createCash(stationId, orderId), orderId };
  };
  const attest = (stationId: number, intentId: number, commandId = `attest:7:${intentId}:key`, timeoutMs = 4_000) =>
    world.ask(stationId, { type: "intent_attest", intentId }, { commandId, timeoutMs });
  const statusOf = async (stationId: number, intentId: number): Promise<string | undefined> => {
    const state = (await world.newest(stationId)).state;
    return [state?.intent, ...(state?.ended ?? [])].find((intent) => intent?.intentId === intentId)?.status;
  };
  const transactions = async (intentId: number): Promise<number> =>
    (await world.database()`select 1 from transactions where intent_id = ${intentId}`).length;
  const orderStatus = async (orderId: number): Promise<string> =>
    (await world.database()<{ status: string }[]>`select status from orders where order_id = ${orderId}`)[0]?.status ??
    "";

  it("an attestation: it is committed, the order is settled once, and the answer comes after that", async () => {
    settlement = await world.startSettlement();
    await world.startHost();
    const stationId = await world.openStation();
    const { intentId, orderId } = await cashIntent(stationId);
    const answers = await Promise.all([attest(stationId, intentId), attest(stationId, intentId)]);
    for (const { reply, intent } of answers) {
      expect(reply).toEqual({ ok: true, type: "intent", intentId, status: "succeeded" });
      expect(intent?.attestation?.transactionId).toBeGreaterThan(0);
    }
    expect(await orderStatus(orderId)).toBe("paid");
    expect(await transactions(intentId)).toBe(1);
    const events = (await world.commits(stationId)).flatMap((commit) => commit.events.map((event) => event.type));
    expect(events.slice(-2)).toEqual(["settlement_started", "intent_succeeded"]);
  });

  it("two attestations of one intent: one settles, the other is refused as done or in progress", async () => {
    settlement = await world.startSettlement();
    await world.startHost();
    const stationId = await world.openStation();
    const { intentId } = await cashIntent(stationId);
    const [first, second] = await Promise.all([
      attest(stationId, intentId, "attest:7:1:a"),
      attest(stationId, intentId, "attest:7:1:b"),
    ]);
    const settledAnswers = [first, second].filter(({ reply }) => reply.ok);
    const refusedAnswers = [first, second].filter(({ reply }) => !reply.ok);
    expect(settledAnswers).toHaveLength(1);
    const code = refusedAnswers[0]?.reply.ok === false ? refusedAnswers[0].reply.code : "";
    expect(["settlement_in_progress", "intent_not_actionable"]).toContain(code);
    expect(await transactions(intentId)).toBe(1);
  });

  it("the order has changed: the intent is created again, and nothing is settled", async () => {
    settlement = await world.startSettlement();
    await world.startHost();
    const stationId = await world.openStation();
    const { intentId, orderId } = await cashIntent(stationId);
    await world.database()`update orders set total_minor = total_minor + 1 where order_id = ${orderId}`;
    const refused = await attest(stationId, intentId);
    expect(refused.reply).toEqual({ ok: false, code: "order_changed", status: "created" });
    expect((await attest(stationId, intentId)).reply).toEqual(refused.reply);
    expect(await statusOf(stationId, intentId)).toBe("created");
    expect(await transactions(intentId)).toBe(0);
    expect(await orderStatus(orderId)).toBe("open");
  });

  it("a late settlement request for a refused attestation, as from a stalled host: settles nothing", async () => {
    settlement = await world.startSettlement();
    await world.startHost();
    const stationId = await world.openStation();
    const { intentId, orderId } = await cashIntent(stationId);
    const change = async (byMinor: number) =>
      await world.database()`update orders set total_minor = total_minor + ${byMinor} where order_id = ${orderId}`;
    await change(1);
    expect((await attest(stationId, intentId, "attest:7:2:a")).reply).toMatchObject({ code: "order_changed" });
    await change(-1);
    const late = {
      intentId,
      attestationId: "attest:7:2:a",
      stationId,
      orderId,
      route: "cash" as const,
      amountMinor: "1250",
      currency: "EUR",
      reference: "",
      attestedBy: 7,
    };
    expect(await call(world.bus.nc, settleIntent, late)).toEqual({ settled: false, code: "order_changed" });
    expect(await transactions(intentId)).toBe(0);
    const answer = await attest(stationId, intentId, "attest:7:2:b");
    expect(answer.reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(await transactions(intentId)).toBe(1);
  });

  it("the seam does not answer: the cashier gets unavailable, and the host settles when the seam answers again", async () => {
    settlement = await world.startSettlement();
    await world.startHost();
    const stationId = await world.openStation();
    const { intentId } = await cashIntent(stationId);
    await settlement.stop();
    await expect(attest(stationId, intentId)).rejects.toBeInstanceOf(UnavailableError);
    expect(await statusOf(stationId, intentId)).toBe("settling");
    expect((await world.ask(stationId, { type: "intent_cancel", intentId })).reply).toMatchObject({
      ok: false,
      code: "settlement_in_progress",
    });
    settlement = await world.startSettlement();
    await eventually(async () => (await statusOf(stationId, intentId)) === "succeeded");
    expect((await attest(stationId, intentId)).reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(await transactions(intentId)).toBe(1);
  });

  it("the host is killed: the next host completes the settlement, under the request id of the attestation", async () => {
    settlement = await world.startSettlement();
    const killed = await world.startHostProcess();
    const stationIds = await Promise.all(Array.from({ length: 5 }, () => world.openStation()));
    const intents = await Promise.all(
      stationIds.map(async (stationId) => ({ stationId, ...(await cashIntent(stationId)) })),
    );
    await settlement.stop();
    const attested = intents.map(({ stationId, intentId }) =>
      forRequest(`request-${intentId}`, () => attest(stationId, intentId, undefined, 1_500).catch(() => undefined)),
    );
    const areAll = async (wanted: string): Promise<boolean> => {
      const statuses = await Promise.all(intents.map(({ stationId, intentId }) => statusOf(stationId, intentId)));
      return statuses.every((status) => status === wanted);
    };
    await eventually(() => areAll("settling"));
    await killed.kill9();
    // All requests have ended, so that no client repeats one at the next host.
    await Promise.all(attested);
    const asked = new Map<number, string | undefined>();
    const subscription = world.bus.nc.subscribe(settleIntent.subject, {
      callback: (_, message) => void asked.set(message.json<{ intentId: number }>().intentId, requestIdOf(message)),
    });
    settlement = await world.startSettlement();
    await world.startHost();
    // No command comes. The host finds the settlements without one.
    await eventually(() => areAll("succeeded"));
    subscription.unsubscribe();
    for (const { intentId } of intents) {
      expect(await transactions(intentId)).toBe(1);
      expect(asked.get(intentId)).toBe(`request-${intentId}`);
    }
  });

  it("hosts are killed during settlements: each order is settled once", { timeout: 180_000 }, async () => {
    settlement = await world.startSettlement();
    // The audit service copies intents, so that a repetition about an intent that has left the state gets its answer.
    const audit = await world.startAudit();
    let running = await world.startHostProcess();
    const stationIds = await Promise.all(Array.from({ length: 6 }, () => world.openStation()));
    const settled: number[] = [];
    const traffic = new AbortController();
    const workers = stationIds.map(async (stationId) => {
      while (!traffic.signal.aborted) {
        const orderId = await persist(() => world.openOrder(stationId));
        const intentId = await persist(() => createCash(stationId, orderId));
        const { reply } = await persist(() => attest(stationId, intentId));
        expect(reply).toMatchObject({ ok: true, status: "succeeded" });
        settled.push(intentId);
      }
    });
    for (let kills = 0; kills < 3; kills += 1) {
      const before = settled.length;
      await eventually(() => settled.length > before + 10, 30_000);
      await running.kill9();
      running = await world.startHostProcess();
    }
    const before = settled.length;
    await eventually(() => settled.length > before + 10, 30_000);
    traffic.abort();
    await Promise.all(workers);
    await audit.stop();
    for (const intentId of settled) expect(await transactions(intentId)).toBe(1);
  });

  it("the settlement service does not run: a creation gets unavailable at once", async () => {
    settlement = await world.startSettlement();
    await world.startHost();
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    await settlement.stop();
    const creating = world.ask(stationId, { type: "intent_create", route: "cash", orderId }, { timeoutMs: 500 });
    await expect(creating).rejects.toBeInstanceOf(UnavailableError);
    expect((await world.newest(stationId)).state.intent).toBeNull();
  });
});
