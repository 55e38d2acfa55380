/** What a host commits after it has released its partition is completed by the partition's new host. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { partitionOf } from "../../machines/partition.ts";
import type { Service } from "../../services/runtime/service.ts";
import { eventually } from "../support/wait-for.ts";
import { type ScriptedProviders, startScriptedProviders } from "./scripted-providers.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

let world: StationWorld;
let settlement: Service;
let providers: ScriptedProviders;
beforeAll(async () => {
  world = await startStationWorld({ money: true });
  settlement = await world.startSettlement();
  providers = await startScriptedProviders(world);
});
afterEach(() => world.stopHosts());
afterAll(async () => {
  await providers.stop();
  await settlement.stop();
  await world.stop();
});

it("the order is read only after the hand-over: the new host completes the collection", async () => {
  const first = await world.startHost();
  const stationIds = await Promise.all(Array.from({ length: 16 }, () => world.openQrStation()));
  const orders = await Promise.all(stationIds.map((stationId) => world.openOrder(stationId)));
  const replies: Promise<unknown>[] = [];
  await world.database().begin(async (sql) => {
    await sql`lock table orders in access exclusive mode`;
    for (const [nth, stationId] of stationIds.entries()) {
      const orderId = orders[nth] ?? 0;
      replies.push(world.ask(stationId, { type: "intent_create", route: "dynamic_qr", orderId }));
    }
    const second = await world.startHost();
    await eventually(() => second.host.owned().size > 0);
    // In this time the other host has read the stored commits.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(first.host.owned().size).toBeGreaterThan(0);
    expect(stationIds.some((stationId) => second.host.owned().has(partitionOf(stationId)))).toBe(true);
  });
  for (const reply of await Promise.all(replies)) expect(reply).toMatchObject({ reply: { ok: true } });
  for (const stationId of stationIds)
    await eventually(async () => (await world.newest(stationId)).state.intent?.status === "presented");
});

it("the commit is stored long after the hand-over: the new host completes the collection", async () => {
  const first = await world.startHostBehindProxy();
  const stationIds = await Promise.all(Array.from({ length: 16 }, () => world.openQrStation()));
  const orders = await Promise.all(stationIds.map((stationId) => world.openOrder(stationId)));
  const unanswered: Promise<unknown>[] = [];
  let releaseHeld: () => void = () => undefined;
  await world.database().begin(async (sql) => {
    await sql`lock table orders in access exclusive mode`;
    for (const [nth, stationId] of stationIds.entries()) {
      const command = { type: "intent_create", route: "dynamic_qr", orderId: orders[nth] ?? 0 } as const;
      // No client repeats this command.
      unanswered.push(world.ask(stationId, command, { timeoutMs: 300 }).catch(() => undefined));
    }
    await Promise.all(unanswered);
    // Now the first host receives the orders, and the proxy holds its commits.
    releaseHeld = first.proxy.holdToServer();
  });
  const second = await world.startHost();
  await eventually(() => stationIds.some((stationId) => second.host.owned().has(partitionOf(stationId))));
  // In this time the other host has read the stored commits.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const moved = stationIds.filter((stationId) => second.host.owned().has(partitionOf(stationId)));
  releaseHeld();
  for (const stationId of moved)
    await eventually(async () => (await world.newest(stationId)).state.intent?.status === "presented");
});
