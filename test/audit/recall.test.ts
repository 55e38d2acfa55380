import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AUDIT_LIMITS } from "../../services/audit/limits.ts";
import { recallHistory } from "../../services/bus/messages/audit.ts";
import { type AuditWorld, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

describe("what has left a station's state is recalled", () => {
  test("each answer as it was given, and an attestation's as the payment seam decided it", async () => {
    const station = await (await world.newStation()).open();
    const { stationId } = station.facts;
    await station.collect(11, orderSnapshot(1));
    await station.report(11, {}, "a");
    await station.report(11, { outcome: "reported_unknown" }, "b");
    await station.do({ type: "intent_attest", intentId: 11 }, station.cashier, "attest:11");
    await station.settled(11, 4711);
    await station.report(11, {}, "late");
    for (let intentId = 100; intentId < 120; intentId += 1) await station.collectCash(intentId);
    expect(station.state?.replies.some((reply) => reply.commandId === "report:11:a")).toBe(false);

    for (const commandId of ["create:11", "report:11:a", "report:11:b", "report:11:late"]) {
      const { response } = await world.ask(recallHistory, { stationId, commandId });
      expect(response, commandId).toEqual(JSON.parse(JSON.stringify(station.responses.get(commandId))));
    }
    const attested = await world.ask(recallHistory, { stationId, commandId: "attest:11", intentId: 11 });
    const intent = { intentId: 11, status: "succeeded", attestation: { transactionId: 4711 } };
    expect(attested.response).toMatchObject({ reply: { ok: true, status: "succeeded", intentId: 11 }, intent });
    expect(attested.intent).toMatchObject(intent);
  });

  test("an intent and an answer that the first machine version wrote, in today's shape", async () => {
    const station = await (await world.newStation()).open();
    const { stationId } = station.facts;
    await station.collectCash(41);
    const key = { stationId, commandId: "attest:41", intentId: 41 };
    const today = await world.ask(recallHistory, key);
    const asFirst = (text: string): string =>
      text.replaceAll(/"(provider|endReason|by)":(null|""|"cashier"),?/g, "").replaceAll(",}", "}");
    const [intent] = await world.database<{ intent: string }[]>`select intent from intent_history where intent_id = 41`;
    const [command] = await world.database<{ response: string }[]>`
      select response from station_commands where station_id = ${stationId} and command_id = 'attest:41'`;
    const [oldIntent, oldResponse] = [asFirst(intent?.intent ?? ""), asFirst(command?.response ?? "")];
    expect(`${oldIntent}${oldResponse}`).not.toMatch(/provider"|endReason|"by"/);
    await world.database`update intent_history set intent = ${oldIntent} where intent_id = 41`;
    await world.database`
      update station_commands set response = ${oldResponse} where station_id = ${stationId} and command_id = 'attest:41'`;
    expect(await world.ask(recallHistory, key)).toEqual(today);
    expect(today.intent).toMatchObject({ provider: null, endReason: "", attestation: { by: "cashier" } });
  });

  test("and what never was is null at once, also for another station", async () => {
    const station = await (await world.newStation()).open();
    const other = await (await world.newStation()).open();
    await station.collectCash(21);
    const { stationId } = other.facts;
    const nothing = { response: null, intent: null };
    expect(await world.ask(recallHistory, { stationId, commandId: "create:21", intentId: 21 })).toEqual(nothing);
    expect(await world.ask(recallHistory, { stationId })).toEqual(nothing);
    const unknown = { stationId: 888_888, commandId: "x", intentId: 1 };
    expect(await world.ask(recallHistory, unknown)).toEqual(nothing);
  });

  test("the newest commit counts, even one that is not copied yet", async () => {
    const station = await (await world.newStation()).open();
    const { stationId } = station.facts;
    for (let intentId = 31; intentId < 36; intentId += 1) {
      await station.collect(intentId, orderSnapshot(1));
      await station.do({ type: "intent_cancel", intentId }, station.cashier, `cancel:${intentId}`);
      const recalled = await world.ask(recallHistory, { stationId, commandId: `cancel:${intentId}`, intentId });
      expect(recalled).toMatchObject({ response: { reply: { status: "cancelled" } }, intent: { status: "cancelled" } });
    }
  });

  test("a reader that says how far back it has to be complete waits for that much only", async () => {
    const station = await (await world.newStation()).open();
    const { stationId } = station.facts;
    await station.collectCash(51);
    await world.untilCopied();
    const copied = station.commits.length;
    await world.database.begin(async (sql) => {
      await sql`select from audit_position for update`;
      await station.collect(52, orderSnapshot(1));
      const startedAtMs = performance.now();
      const never = { stationId, commandId: "create:never", throughVersion: copied };
      expect(await world.ask(recallHistory, never)).toEqual({ response: null, intent: null });
      expect(performance.now() - startedAtMs).toBeLessThan(AUDIT_LIMITS.catchUpMs);
      const newest = { stationId, commandId: "create:52", throughVersion: copied + 1 };
      await expect(world.ask(recallHistory, newest)).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    });
    // Another station's commits say nothing of this one's.
    const other = await (await world.newStation()).open();
    await other.collectCash(53);
    const { response } = await world.ask(recallHistory, {
      stationId,
      commandId: "create:52",
      throughVersion: copied + 1,
    });
    expect(response).toMatchObject({ reply: { ok: true, intentId: 52 } });
  });

  test("I6: a copy that lags is not taken for one that knows nothing", async () => {
    const station = await (await world.newStation()).open();
    const { stationId } = station.facts;
    await world.untilCopied();
    await world.database.begin(async (sql) => {
      await sql`select from audit_position for update`;
      await station.collect(41, orderSnapshot(1));
      const asked = world.ask(recallHistory, { stationId, commandId: "create:41" });
      await expect(asked).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    });
    const { response } = await world.ask(recallHistory, { stationId, commandId: "create:41" });
    expect(response).toMatchObject({ reply: { ok: true, intentId: 41, status: "created" } });
  });
});
