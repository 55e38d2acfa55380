import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { StationResponse } from "../../services/bus/messages/station-commands.ts";
import { UnavailableError } from "../../services/bus/refusals.ts";
import type { Service } from "../../services/runtime/service.ts";
import { eventually } from "../support/wait-for.ts";
import { type ScriptedProviders, startScriptedProviders } from "./scripted-providers.ts";
import { findIntent, PROVIDER, persist, type StationWorld, startStationWorld } from "./station-world.ts";

describe("a provider's confirmation", () => {
  let world: StationWorld;
  let settlement: Service;
  let audit: Service;
  let providers: ScriptedProviders;
  beforeAll(async () => {
    world = await startStationWorld({ money: true });
    [settlement, audit] = await Promise.all([world.startSettlement(), world.startAudit()]);
    providers = await startScriptedProviders(world);
  });
  afterEach(() => world.stopHosts());
  afterAll(async () => {
    await providers.stop();
    await Promise.all([settlement.stop(), audit.stop()]);
    await world.stop();
  });

  /** A QR on the display. */
  const present = async (stationId: number, lifetimeMs?: number): Promise<{ intentId: number; orderId: number }> => {
    const orderId = await world.openOrder(stationId);
    const created = await world.ask(stationId, { type: "intent_create", route: "dynamic_qr", orderId, lifetimeMs });
    const intentId = created.intent?.intentId ?? 0;
    await eventually(async () => (await findIntent(world, stationId, intentId))?.status === "presented");
    return { intentId, orderId };
  };
  const confirm = (
    stationId: number,
    intentId: number,
    { commandId = `provider:81:${intentId}`, reference = `PAY-${intentId}` } = {},
  ): Promise<StationResponse> =>
    world.ask(
      stationId,
      { type: "provider_confirm", intentId, providerReference: reference },
      { commandId, actor: PROVIDER, timeoutMs: 8_000 },
    );
  const transactions = async (orderId: number) =>
    await world.database()<
      { intent_id: number; route: string; reference: string; attested_by: number }[]
    >`select intent_id, route, reference, attested_by from transactions where order_id = ${orderId}`;
  const eventsOf = async (stationId: number): Promise<string[]> =>
    (await world.commits(stationId)).flatMap((commit) => commit.events.map((event) => event.type));

  describe("recorded in time, for a station that has no host until after the deadline", () => {
    /** Presents a QR whose deadline passes while no host runs. */
    const missDeadline = async (
      recorded?: string,
    ): Promise<{ stationId: number; intentId: number; orderId: number }> => {
      await world.startHost();
      const stationId = await world.openQrStation();
      const { intentId, orderId } = await present(stationId, LIFETIME_MS);
      await world.stopHosts();
      if (recorded !== undefined) providers.recorded.set(intentId, recorded);
      const { intent } = (await world.newest(stationId)).state;
      await eventually(() => Date.now() > (intent?.expiresAtMs ?? 0));
      return { stationId, intentId, orderId };
    };
    const LIFETIME_MS = 2_500;

    it("the next host checks for the confirmation: the order is settled", async () => {
      const { stationId, intentId, orderId } = await missDeadline("PAY-in-time");
      await world.startHost();
      await eventually(async () => (await findIntent(world, stationId, intentId))?.status === "succeeded");
      expect(await transactions(orderId)).toMatchObject([{ intent_id: intentId, reference: "PAY-in-time" }]);
      expect((await confirm(stationId, intentId, { reference: "PAY-in-time" })).reply).toMatchObject({ ok: true });
    });

    it("no confirmation is recorded: the QR expires", async () => {
      const { stationId, intentId } = await missDeadline();
      await world.startHost();
      await eventually(async () => (await findIntent(world, stationId, intentId))?.status === "expired");
    });

    it("the providers service does not answer: the QR stays, and cash needs the cashier's confirmation", async () => {
      const { stationId, intentId, orderId } = await missDeadline("unanswered");
      await world.startHost();
      const create = { type: "intent_create", route: "cash", orderId } as const;
      await world.ask(stationId, { type: "order_inquire", orderId }, { actor: PROVIDER });
      expect((await findIntent(world, stationId, intentId))?.status).toBe("presented");
      expect((await world.ask(stationId, create)).reply).toMatchObject({ ok: false, code: "money_may_have_moved" });
      const confirmed = await world.ask(stationId, { ...create, confirmsMoneyMayHaveMoved: true });
      expect(confirmed.reply).toMatchObject({ ok: true });
      expect((await findIntent(world, stationId, intentId))?.status).toBe("expired");
    });
  });

  it("settles the order through the payment seam before its answer, with the provider as the actor", async () => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId, orderId } = await present(stationId);
    const { reply, intent } = await confirm(stationId, intentId);
    expect(reply).toEqual({ ok: true, type: "intent", intentId, status: "succeeded" });
    expect(intent?.attestation).toMatchObject({ by: "provider", cashierId: 0, reference: `PAY-${intentId}` });
    expect(await transactions(orderId)).toEqual([
      { intent_id: intentId, route: "dynamic_qr", reference: `PAY-${intentId}`, attested_by: 0 },
    ]);
  });

  it.each([
    ["with one id", () => undefined],
    ["each with another id", (turn: number) => `provider:81:turn-${turn}`],
  ])("fifty times at once, %s: settles once, and all answers are equal", async (_how, idOf) => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId, orderId } = await present(stationId);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, turn) => persist(() => confirm(stationId, intentId, { commandId: idOf(turn) }))),
    );
    for (const { reply } of answers) expect(reply).toEqual({ ok: true, type: "intent", intentId, status: "succeeded" });
    expect(await transactions(orderId)).toHaveLength(1);
    const events = await eventsOf(stationId);
    expect(events.filter((type) => type === "provider_confirmed")).toHaveLength(1);
    expect(events.filter((type) => type === "intent_succeeded")).toHaveLength(1);
  });

  it("is refused by the seam: the payment stays with the intent, and the cashier attests the corrected order", async () => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId, orderId } = await present(stationId);
    const change = async (byMinor: number) =>
      await world.database()`update orders set total_minor = total_minor + ${byMinor} where order_id = ${orderId}`;
    await change(1);
    const refused = { ok: false, code: "order_changed", status: "processing" };
    expect((await confirm(stationId, intentId)).reply).toEqual(refused);
    expect((await confirm(stationId, intentId)).reply).toEqual(refused);
    await change(-1);
    const attested = await world.ask(
      stationId,
      { type: "intent_attest", intentId },
      { commandId: "attest:7:corrected" },
    );
    expect(attested.reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(await transactions(orderId)).toMatchObject([{ reference: `PAY-${intentId}`, attested_by: 7 }]);
    // The provider repeats the confirmation under another id. The order is already settled.
    expect((await confirm(stationId, intentId, { commandId: "provider:81:again" })).reply).toMatchObject({ ok: true });
  });

  it("its host is killed during the settlement: the next host completes it", async () => {
    const killed = await world.startHostProcess();
    const stationId = await world.openQrStation();
    const { intentId, orderId } = await present(stationId);
    await settlement.stop();
    const asking = confirm(stationId, intentId).catch((error: unknown) => error);
    await eventually(async () => (await findIntent(world, stationId, intentId))?.status === "settling");
    await killed.kill9();
    settlement = await world.startSettlement();
    await world.startHost();
    const answer = await asking;
    const reply =
      answer instanceof UnavailableError
        ? (await confirm(stationId, intentId)).reply
        : (answer as StationResponse).reply;
    expect(reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(await transactions(orderId)).toHaveLength(1);
  });

  it("at once with a cancellation: one takes effect, and a payment that is too late is kept as late money", async () => {
    await world.startHost();
    const stationIds = await Promise.all(Array.from({ length: 12 }, () => world.openQrStation()));
    const outcomes = await Promise.all(
      stationIds.map(async (stationId, index) => {
        const { intentId, orderId } = await present(stationId);
        const cancel = () => world.ask(stationId, { type: "intent_cancel", intentId });
        const pair =
          index % 2 === 0 ? [confirm(stationId, intentId), cancel()] : [cancel(), confirm(stationId, intentId)];
        await Promise.all(pair);
        return { stationId, intentId, orderId, status: (await findIntent(world, stationId, intentId))?.status };
      }),
    );
    for (const { stationId, intentId, orderId, status } of outcomes) {
      await expectConsistent({ stationId, intentId, orderId, status });
    }
    expect(new Set(outcomes.map((outcome) => outcome.status))).toEqual(new Set(["succeeded", "cancelled"]));
  });

  it("just before or after the deadline: settles the order or is kept as late money, never both, never lost", async () => {
    await world.startHost();
    const stationIds = await Promise.all(Array.from({ length: 10 }, () => world.openQrStation()));
    const statuses = await Promise.all(
      stationIds.map(async (stationId, index) => {
        const { intentId, orderId } = await present(stationId, 1_500);
        const expiresAtMs = (await findIntent(world, stationId, intentId))?.expiresAtMs ?? 0;
        // The first comes well before the deadline, the last after it, and the others within 4 ms of it.
        const offsetMs = index === 0 ? -700 : index === 9 ? 100 : index - 5;
        await new Promise((resolve) => setTimeout(resolve, expiresAtMs + offsetMs - Date.now()));
        await confirm(stationId, intentId);
        const status = (await findIntent(world, stationId, intentId))?.status;
        await expectConsistent({ stationId, intentId, orderId, status });
        return status;
      }),
    );
    expect([statuses[0], statuses[9]]).toEqual(["succeeded", "expired"]);
  });

  it("about an intent that only the audit copy has: it is kept as late money", async () => {
    await world.startHost();
    const stationId = await world.openQrStation();
    const { intentId } = await present(stationId);
    await world.ask(stationId, { type: "intent_cancel", intentId });
    for (let made = 0; made < 8; made += 1) {
      const orderId = await world.openOrder(stationId);
      const { intent } = await world.ask(stationId, { type: "intent_create", route: "cash", orderId });
      await world.ask(stationId, { type: "intent_cancel", intentId: intent?.intentId ?? 0 });
    }
    expect(await findIntent(world, stationId, intentId)).toBeUndefined();
    const { reply } = await confirm(stationId, intentId);
    expect(reply).toEqual({ ok: false, code: "intent_not_actionable", status: "cancelled" });
    expect((await world.newest(stationId)).events).toMatchObject([{ type: "late_money_kept", intentId }]);
    const unknown = await confirm(stationId, 999_999_999);
    expect(unknown.reply).toEqual({ ok: false, code: "intent_unknown" });
  });

  async function expectConsistent(outcome: {
    stationId: number;
    intentId: number;
    orderId: number;
    status: string | undefined;
  }): Promise<void> {
    const { stationId, intentId, orderId, status } = outcome;
    const isPaid = status === "succeeded";
    expect(await transactions(orderId)).toHaveLength(isPaid ? 1 : 0);
    const events = await eventsOf(stationId);
    expect(events.includes("late_money_kept")).toBe(!isPaid);
    const { unclearCollections } = (await world.newest(stationId)).state;
    expect(unclearCollections.slice(-1)).toMatchObject(isPaid ? [] : [{ orderId, intentId, reason: "late_money" }]);
  }
});
