import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { setDisk } from "../../services/bus/disk-gate.ts";
import { findEndedIntent } from "../../services/bus/messages/intents.ts";
import type { StationResponse } from "../../services/bus/messages/station-commands.ts";
import { call } from "../../services/bus/operation.ts";
import { deviceActor, type StationWorld, startStationWorld } from "./station-world.ts";

const withoutSequence = ({ reply, intent }: StationResponse) => ({ reply, intent });

describe("the same command again (I6)", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld({ money: true });
    // No other service runs. A repetition needs at most the payment seam.
    await Promise.all([world.startSettlement(), world.startHost()]);
  });
  afterAll(() => world.stop());

  const create = async (stationId: number, commandId: string, orderId: number, route: "cash" | "smart_pos" = "cash") =>
    await world.ask(stationId, { type: "intent_create", route, orderId }, { commandId });
  const cancel = async (stationId: number, created: StationResponse) =>
    await world.ask(stationId, { type: "intent_cancel", intentId: created.intent?.intentId ?? 0 });
  const report = async (stationId: number, deviceId: number, intentId: number, key: string) =>
    await world.ask(
      stationId,
      { type: "intent_report", intentId, outcome: "reported_success", providerReference: "R-1", providerCode: "00" },
      { commandId: `report:${deviceId}:${intentId}:${key}`, actor: deviceActor(deviceId) },
    );
  /** Replaces the host by a new one, which has no stations in memory. */
  const restart = async (): Promise<void> => {
    await world.stopHosts();
    await world.startHost();
  };

  it("concurrently and after a restart: gets the same answer, and takes effect once", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => create(stationId, "create:7:1:key", orderId)));
    await restart();
    answers.push(await create(stationId, "create:7:1:key", orderId));
    expect(answers[0]?.reply).toMatchObject({ ok: true, type: "intent", status: "created" });
    expect(new Set(answers.map((answer) => JSON.stringify(withoutSequence(answer)))).size).toBe(1);
    const commits = await world.commits(stationId);
    expect(commits.filter((commit) => commit.commandId === "create:7:1:key")).toHaveLength(1);
  });

  it("after the intent has changed: gets the intent of the first answer", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    const created = await create(stationId, "create:7:2:key", orderId);
    await cancel(stationId, created);
    expect(withoutSequence(await create(stationId, "create:7:2:key", orderId))).toEqual(withoutSequence(created));
  });

  /** Sends commands whose replies displace all others from the state. */
  const forgetReplies = async (stationId: number): Promise<void> => {
    for (let round = 0; round < STATE_LIMITS.replies; round += 1) await world.ask(stationId, { type: "lease_acquire" });
  };
  /** Makes collections that displace all others from the state. */
  const forgetIntents = async (stationId: number, orderId: number): Promise<void> => {
    for (let round = 0; round < STATE_LIMITS.endedIntents; round += 1)
      await cancel(stationId, await create(stationId, `create:7:more:${round}`, orderId));
  };
  const countOf = async (stationId: number, type: string): Promise<number> =>
    (await world.commits(stationId)).flatMap((commit) => commit.events).filter((event) => event.type === type).length;

  it("a creation: its reply has left the state, the same answer without a second collection", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    const first = await create(stationId, "create:7:3:key", orderId);
    await cancel(stationId, first);
    await forgetReplies(stationId);
    const known = (await world.newest(stationId)).state.replies.map((stored) => stored.commandId);
    expect(known).not.toContain("create:7:3:key");
    expect(withoutSequence(await create(stationId, "create:7:3:key", orderId))).toEqual(withoutSequence(first));
    expect(await countOf(stationId, "intent_created")).toBe(1);
  });

  it("a creation: its intent has left the state, the same answer without a second collection", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    const first = await create(stationId, "create:7:33:key", orderId);
    await cancel(stationId, first);
    await forgetIntents(stationId, orderId);
    await forgetReplies(stationId);
    expect((await world.newest(stationId)).state.ended.map(({ intentId }) => intentId)).not.toContain(
      first.intent?.intentId,
    );
    const created = await countOf(stationId, "intent_created");
    expect(withoutSequence(await create(stationId, "create:7:33:key", orderId))).toEqual(withoutSequence(first));
    expect(await countOf(stationId, "intent_created")).toBe(created);
  });

  it("a creation whose collection expires in the next creation: its end is stored with the creation after that", async () => {
    const stationId = await world.openStation();
    const [expiring, next] = [await world.openOrder(stationId), await world.openOrder(stationId)];
    const lifetimeMs = 800;
    const first = await world.ask(stationId, { type: "intent_create", route: "cash", orderId: expiring, lifetimeMs });
    const intentId = first.intent?.intentId ?? 0;
    // The settlement service answers the next creation after the deadline of the first collection.
    const creating = await world.database().begin(async (tx) => {
      await tx`lock table intent_records in exclusive mode`;
      const asked = create(stationId, "create:7:41:key", next);
      await pause(lifetimeMs);
      return { asked };
    });
    const second = await creating.asked;
    expect((await world.newest(stationId)).events.map(({ type }) => type)).toEqual([
      "intent_expired",
      "intent_created",
    ]);
    await cancel(stationId, second);
    await cancel(stationId, await create(stationId, "create:7:42:key", next));
    const found = await call(world.bus.nc, findEndedIntent, { stationId, intentId });
    expect(found.intent).toMatchObject({ intentId, status: "expired" });
  });

  it("a creation on a full disk: a repetition gets its answer, and no other collection begins", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    const first = await create(stationId, "create:7:39:key", orderId);
    await cancel(stationId, first);
    await forgetReplies(stationId);
    await world.stopHosts();
    const { bus } = await world.startHost();
    setDisk(bus.nc, { freeBytes: () => 0, tier: () => "full" });
    expect(withoutSequence(await create(stationId, "create:7:39:key", orderId))).toEqual(withoutSequence(first));
    await expect(create(stationId, "create:7:40:key", orderId)).rejects.toThrow(/storage_low/);
    expect(await countOf(stationId, "intent_created")).toBe(1);
    await restart();
  });

  it("a creation that was refused without a commit: it may succeed under the same key", async () => {
    const stationId = await world.openStation({ lease: false });
    const orderId = await world.openOrder(stationId);
    const refused = await create(stationId, "create:7:34:key", orderId);
    expect(refused.reply).toEqual({ ok: false, code: "lease_required" });
    await world.ask(stationId, { type: "lease_acquire" });
    await cancel(stationId, await create(stationId, "create:7:35:key", orderId));
    const created = await create(stationId, "create:7:34:key", orderId);
    expect(created.reply).toMatchObject({ ok: true, status: "created" });
    await forgetReplies(stationId);
    expect(withoutSequence(await create(stationId, "create:7:34:key", orderId))).toEqual(withoutSequence(created));
  });

  it("a creation of another order under the same key: refused, also when nothing was created", async () => {
    const stationId = await world.openStation({ lease: false });
    const [first, second] = [await world.openOrder(stationId), await world.openOrder(stationId)];
    expect((await create(stationId, "create:7:36:key", first)).reply).toMatchObject({ code: "lease_required" });
    await world.ask(stationId, { type: "lease_acquire" });
    const { reply } = await create(stationId, "create:7:36:key", second);
    expect(reply).toEqual({ ok: false, code: "idempotency_key_reused" });
  });

  it.each([
    ["its reply has left the state", false],
    ["its intent has left the state", true],
  ])("an attestation and a cancellation: %s, the same answer", async (_, isIntentGone) => {
    const stationId = await world.openStation();
    const [paid, open] = [await world.openOrder(stationId), await world.openOrder(stationId)];
    const { intentId: settled = 0 } = (await create(stationId, "create:7:37:key", paid)).intent ?? {};
    const attest = () =>
      world.ask(stationId, { type: "intent_attest", intentId: settled }, { commandId: "attest:7:37" });
    const attested = await attest();
    expect(attested.reply).toMatchObject({ ok: true, status: "succeeded" });
    const { intentId: ended = 0 } = (await create(stationId, "create:7:38:key", open)).intent ?? {};
    const cancelIt = () =>
      world.ask(stationId, { type: "intent_cancel", intentId: ended }, { commandId: "cancel:7:38" });
    const cancelled = await cancelIt();
    if (isIntentGone) await forgetIntents(stationId, open);
    await forgetReplies(stationId);
    expect(withoutSequence(await attest())).toEqual(withoutSequence(attested));
    expect(withoutSequence(await cancelIt())).toEqual(withoutSequence(cancelled));
    // With another key, this is another command.
    expect((await world.ask(stationId, { type: "intent_cancel", intentId: ended })).reply).toMatchObject({
      ok: false,
      code: "intent_not_actionable",
    });
  });

  it("a report: its reply has left the state, the same answer without a second report", async () => {
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const created = await create(stationId, "create:7:4:key", await world.openOrder(stationId), "smart_pos");
    const intentId = created.intent?.intentId ?? 0;
    const first = await report(stationId, deviceId, intentId, "a");
    expect(first.reply).toMatchObject({ ok: true, type: "report", report: { providerReference: "R-1" } });
    await forgetReplies(stationId);
    const again = await report(stationId, deviceId, intentId, "a");
    expect(again.reply).toEqual(first.reply);
    const newest = (await world.newest(stationId)).state.intent;
    expect(newest?.reportCount).toBe(1);
    // The companion repeats its report after the intent has ended and left the state.
    await cancel(stationId, created);
    await forgetIntents(stationId, await world.openOrder(stationId));
    expect((await report(stationId, deviceId, intentId, "a")).reply).toEqual(first.reply);
    expect(await countOf(stationId, "late_evidence_kept")).toBe(0);
  });

  it("a first report after its intent has left the state: stored as late evidence, and refused as ended", async () => {
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const orderId = await world.openOrder(stationId);
    const old = await create(stationId, "create:7:5:key", orderId, "smart_pos");
    await cancel(stationId, old);
    for (let round = 0; round < STATE_LIMITS.endedIntents; round += 1) {
      await cancel(stationId, await create(stationId, `create:7:6:${round}`, orderId));
    }
    const intentId = old.intent?.intentId ?? 0;
    const state = (await world.newest(stationId)).state;
    expect(state?.ended.map((intent) => intent.intentId)).not.toContain(intentId);
    const late = await report(stationId, deviceId, intentId, "late");
    expect(late.reply).toEqual({ ok: false, code: "intent_not_actionable", status: "cancelled" });
    const kept = (await world.newest(stationId)).events;
    expect(kept).toMatchObject([{ type: "late_evidence_kept", intentId, deviceId, status: "cancelled" }]);
    expect((await world.ask(stationId, { type: "intent_attest", intentId })).reply).toEqual({
      ok: false,
      code: "intent_not_actionable",
      status: "cancelled",
    });
  });

  it("a report about an unknown intent, another station's or another device's: the same answer for each", async () => {
    const [here, there] = await Promise.all([world.openStation(), world.openStation()]);
    const mine = await world.addCompanion(here);
    const theirs = await world.addCompanion(there);
    const other = await create(there, "create:7:7:key", await world.openOrder(there), "smart_pos");
    const foreign = await report(here, mine, other.intent?.intentId ?? 0, "a");
    const unknown = await report(here, mine, 987_654_321, "b");
    const neighbour = await world.addCompanion(there);
    const others = await report(there, neighbour, other.intent?.intentId ?? 0, "c");
    expect(other.intent?.deviceId).toBe(theirs);
    for (const { reply } of [foreign, unknown, others])
      expect(reply).toEqual({ ok: false, code: "handoff_not_assigned" });
  });

  it("a creation for another station's order: refused as order_unknown", async () => {
    const [here, there] = await Promise.all([world.openStation(), world.openStation()]);
    const { reply } = await create(here, "create:7:8:key", await world.openOrder(there));
    expect(reply).toEqual({ ok: false, code: "order_unknown" });
  });
});
