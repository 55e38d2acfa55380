/** Which intent an idempotency key has created, and the ends of intents that have left their station's state (I6). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findEndedIntent, prepareIntent } from "../../services/bus/messages/intents.ts";
import { openOrder, voidOrder } from "../../services/bus/messages/orders.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { keyRetention } from "../../services/settlement/retention.ts";
import { refusalOf, type SettlementWorld, startSettlementWorld } from "./settlement-world.ts";

let world: SettlementWorld;
beforeAll(async () => {
  world = await startSettlementWorld();
});
afterAll(() => world.stop());

const lines = [{ name: "Soup", quantity: 1, unitAmountMinor: "990" }];

async function openStation() {
  const { stationId, cashier } = await world.openStation();
  const open = async (): Promise<number> =>
    (await world.ask(openOrder, { caller: cashier, stationId, lines })).order.orderId;
  return { stationId, orderId: await open(), open };
}

/** An ended intent as a station sends it. */
const endedIntent = (intentId: number, more: Readonly<Record<string, unknown>> & { orderId?: number } = {}) => ({
  intentId,
  orderId: 1,
  status: "cancelled" as const,
  deviceId: null,
  reports: [],
  attestation: null,
  ...more,
});

const recordsOf = (stationId: number) => world.database<{ intent_id: number; command_id: string | null }[]>`
  select intent_id, command_id from intent_records where station_id = ${stationId} order by intent_id`;

describe("preparing an intent", () => {
  test("20 requests at once with one key: one intent; without a key: another intent each time", async () => {
    const { stationId, orderId } = await openStation();
    const keyed = await Promise.all(
      Array.from({ length: 20 }, () => world.ask(prepareIntent, { stationId, orderId, commandId: "create:7:k" })),
    );
    expect(new Set(keyed.map(({ intentId }) => intentId)).size).toBe(1);
    const fresh = await Promise.all([1, 2].map(() => world.ask(prepareIntent, { stationId, orderId })));
    expect(new Set([...keyed, ...fresh].map(({ intentId }) => intentId)).size).toBe(3);
    expect(await recordsOf(stationId)).toHaveLength(1);
  });

  test("the same key at another station: another intent", async () => {
    const [here, there] = await Promise.all([openStation(), openStation()]);
    const ids = await Promise.all(
      [here, there].map(
        async ({ stationId, orderId }) => await world.ask(prepareIntent, { stationId, orderId, commandId: "k" }),
      ),
    );
    expect(ids[0]?.intentId).not.toBe(ids[1]?.intentId);
  });

  test("different keys that PostgreSQL cannot store verbatim: different intents", async () => {
    const { stationId, orderId } = await openStation();
    const ids = await Promise.all(
      ["k\0", "k\ud800", "k\ufffd"].map(
        async (commandId) => (await world.ask(prepareIntent, { stationId, orderId, commandId })).intentId,
      ),
    );
    expect(new Set(ids).size).toBe(3);
  });

  test("another order under the same key: idempotency_key_reused", async () => {
    const { stationId, orderId, open } = await openStation();
    await world.ask(prepareIntent, { stationId, orderId, commandId: "k" });
    const asked = world.ask(prepareIntent, { stationId, orderId: await open(), commandId: "k" });
    expect(await refusalOf(asked)).toEqual({ code: "idempotency_key_reused" });
  });

  test("an order that the station does not have: not_found, and the key stays free", async () => {
    const [here, there] = await Promise.all([openStation(), openStation()]);
    const { stationId } = here;
    const asked = world.ask(prepareIntent, { stationId, orderId: there.orderId, commandId: "k" });
    expect(await refusalOf(asked)).toEqual({ code: "not_found" });
    expect(await recordsOf(stationId)).toEqual([]);
    expect(await world.ask(prepareIntent, { stationId, orderId: here.orderId, commandId: "k" })).toMatchObject({
      ended: null,
    });
  });
});

describe("an ended intent", () => {
  test("sent with a later creation: found by its id and by its key, as it was first sent", async () => {
    const { stationId, orderId } = await openStation();
    const { intentId } = await world.ask(prepareIntent, { stationId, orderId, commandId: "first" });
    const key = { stationId, intentId };
    expect(await world.ask(findEndedIntent, key)).toEqual({ intent: null, orderStatus: null });
    const ended = endedIntent(intentId, { cancelKey: "a" });
    await world.ask(prepareIntent, { stationId, orderId, commandId: "second", ended });
    await world.ask(prepareIntent, { stationId, orderId, ended: endedIntent(intentId, { cancelKey: "b" }) });
    expect(await world.ask(findEndedIntent, key)).toMatchObject({
      intent: { intentId, status: "cancelled", cancelKey: "a" },
    });
    const again = await world.ask(prepareIntent, { stationId, orderId, commandId: "first" });
    expect(again).toMatchObject({ intentId, ended: { intentId, status: "cancelled", cancelKey: "a" } });
  });

  test("created without a key: found by its id", async () => {
    const { stationId, orderId } = await openStation();
    const { intentId } = await world.ask(prepareIntent, { stationId, orderId });
    await world.ask(prepareIntent, { stationId, orderId, commandId: "next", ended: endedIntent(intentId) });
    expect(await world.ask(findEndedIntent, { stationId, intentId })).toMatchObject({ intent: { intentId } });
  });

  test("found with the status of its order", async () => {
    const { stationId, cashier } = await world.openStation();
    const { orderId } = (await world.ask(openOrder, { caller: cashier, stationId, lines })).order;
    const { intentId } = await world.ask(prepareIntent, { stationId, orderId });
    const ended = endedIntent(intentId, { orderId });
    await world.ask(prepareIntent, { stationId, orderId, ended });
    const found = async () => (await world.ask(findEndedIntent, { stationId, intentId })).orderStatus;
    expect(await found()).toBe("open");
    await world.ask(voidOrder, { caller: cashier, orderId });
    expect(await found()).toBe("voided");
  });

  test("requested for another station: null", async () => {
    const [here, there] = await Promise.all([openStation(), openStation()]);
    const { stationId, orderId } = here;
    const { intentId } = await world.ask(prepareIntent, { stationId, orderId });
    await world.ask(prepareIntent, { stationId, orderId, ended: endedIntent(intentId) });
    expect(await world.ask(findEndedIntent, { stationId: there.stationId, intentId })).toEqual({
      intent: null,
      orderStatus: null,
    });
  });
});

test("records of intents: those past their retention are deleted, the others stay", async () => {
  const { stationId, orderId } = await openStation();
  await world.ask(prepareIntent, { stationId, orderId, commandId: "old" });
  await world.database`update intent_records set created_at = now() - interval '31 days' where station_id = ${stationId}`;
  await world.ask(prepareIntent, { stationId, orderId, commandId: "new" });
  await removeExpired(keyRetention(world), { info: () => undefined });
  expect((await recordsOf(stationId)).map((row) => row.command_id)).toEqual(["new"]);
});
