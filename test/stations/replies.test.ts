import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
import type { StationResponse } from "../../services/bus/messages/station.ts";
import { deviceActor, eventually, type StationWorld, startStationWorld } from "./station-world.ts";

const withoutSequence = ({ reply, intent }: StationResponse) => ({ reply, intent });

describe("the same command again (I6)", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld({ money: true });
    await Promise.all([world.startSettlement(), world.startAudit(), world.startHost()]);
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
  /** Replaces the host: what only its memory knew is gone. */
  const restart = async (): Promise<void> => {
    await world.stopHosts();
    await world.startHost();
  };

  it("gets the same answer, one after another, at once, and after a restart, and happens once", async () => {
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

  it("shows the intent as it was then, not as it is now", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    const created = await create(stationId, "create:7:2:key", orderId);
    await cancel(stationId, created);
    expect(withoutSequence(await create(stationId, "create:7:2:key", orderId))).toEqual(withoutSequence(created));
  });

  it("gets it from the audit copy when the state has forgotten it", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    const first = await create(stationId, "create:7:3:key", orderId);
    await cancel(stationId, first);
    for (let round = 0; round < STATE_LIMITS.replies; round += 1) await world.ask(stationId, { type: "lease_acquire" });
    const known = (await world.newest(stationId)).state.replies.map((stored) => stored.commandId);
    expect(known).not.toContain("create:7:3:key");
    const again = await create(stationId, "create:7:3:key", orderId);
    expect(again.reply).toEqual(first.reply);
    expect(again.intent).toMatchObject({ intentId: first.intent?.intentId, status: "created" });
    const created = (await world.commits(stationId)).flatMap((commit) => commit.events);
    expect(created.filter((event) => event.type === "intent_created")).toHaveLength(1);
  });

  it("gets it at the boundary: the oldest reply that the state still has, and the newest that it has not", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    // Every commit of these keeps a reply, so the state reaches no further back than it must.
    for (let round = 0; round < STATE_LIMITS.replies; round += 1) await world.ask(stationId, { type: "lease_acquire" });
    const first = await create(stationId, "create:7:31:key", orderId);
    await cancel(stationId, first);
    for (let round = 0; round < STATE_LIMITS.replies - 2; round += 1)
      await world.ask(stationId, { type: "lease_acquire" });
    const oldestOf = async () => (await world.newest(stationId)).state.replies[0]?.commandId;
    expect(await oldestOf()).toBe("create:7:31:key");
    expect((await create(stationId, "create:7:31:key", orderId)).reply).toEqual(first.reply);
    await world.ask(stationId, { type: "lease_acquire" });
    expect(await oldestOf()).not.toBe("create:7:31:key");
    const again = await create(stationId, "create:7:31:key", orderId);
    expect(again.reply).toEqual(first.reply);
    const events = (await world.commits(stationId)).flatMap((commit) => commit.events);
    expect(events.filter((event) => event.type === "intent_created")).toHaveLength(1);
  });

  it("makes a keyed creation wait for the part of the copy in which its answer can be, and for no more", async () => {
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    for (let round = 0; round < STATE_LIMITS.replies; round += 1) await world.ask(stationId, { type: "lease_acquire" });
    const copied = async (version: number) => {
      const rows = await world.database()`
        select from audit_heads where station_id = ${stationId} and log_version >= ${version}`;
      return rows.length === 1;
    };
    const { version } = await world.newest(stationId);
    await eventually(() => copied(version));
    await world.database().begin(async (sql) => {
      await sql`select from audit_position for update`;
      // The copy stands still. As long as the state's own replies reach back to it, a new key needs nobody else.
      let last: StationResponse | undefined;
      for (let round = 0; round < STATE_LIMITS.replies / 2; round += 1) {
        last = await create(stationId, `create:7:32:${round}`, orderId);
        expect(last.reply).toMatchObject({ ok: true, status: "created" });
        await cancel(stationId, last);
      }
      expect((await world.newest(stationId)).version).toBe(version + STATE_LIMITS.replies);
      await world.ask(stationId, { type: "lease_acquire" });
      const asked = create(stationId, "create:7:32:0", orderId);
      await expect(asked).rejects.toMatchObject({ code: "unavailable" });
    });
    const again = await create(stationId, "create:7:32:0", orderId);
    const events = (await world.commits(stationId)).flatMap((commit) => commit.events);
    expect(again.reply).toMatchObject({ ok: true, status: "created" });
    expect(events.filter((event) => event.type === "intent_created")).toHaveLength(STATE_LIMITS.replies / 2);
  });

  it("records a report once, also when it comes again after the state has forgotten it", async () => {
    const stationId = await world.openStation();
    const deviceId = await world.addCompanion(stationId);
    const created = await create(stationId, "create:7:4:key", await world.openOrder(stationId), "smart_pos");
    const intentId = created.intent?.intentId ?? 0;
    const first = await report(stationId, deviceId, intentId, "a");
    expect(first.reply).toMatchObject({ ok: true, type: "report", report: { providerReference: "R-1" } });
    for (let round = 0; round < STATE_LIMITS.replies; round += 1) await world.ask(stationId, { type: "lease_acquire" });
    const again = await report(stationId, deviceId, intentId, "a");
    expect(again.reply).toEqual(first.reply);
    const newest = (await world.newest(stationId)).state.intent;
    expect(newest?.reportCount).toBe(1);
  });

  it("keeps a report on an intent that has left the state as late evidence, and refuses it as ended", async () => {
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

  it("tells an unknown intent, another station's and another device's apart for nobody", async () => {
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

  it("refuses an order of another station as unknown", async () => {
    const [here, there] = await Promise.all([world.openStation(), world.openStation()]);
    const { reply } = await create(here, "create:7:8:key", await world.openOrder(there));
    expect(reply).toEqual({ ok: false, code: "order_unknown" });
  });
});
