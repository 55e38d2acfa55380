/** One owner's slow targets do not delay the others. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Fleet, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  // The signer is a separate process: on one event loop with the receiver and the test, each would wait for the others.
  world = await startSignerWorld({ signers: 0 });
  await world.addSignerProcess();
});
afterAll(() => world.stop());

const TARGETS = 100;
const SECONDS = 4;

async function fleets(path: string, count: number): Promise<Fleet[]> {
  const AT_ONCE = 10;
  const opened: Fleet[] = [];
  while (opened.length < count) {
    const next = Array.from({ length: AT_ONCE }, async (_, index) => {
      const fleet = await world.openFleet();
      await world.addEndpoint(fleet, `${path}/${opened.length + index}`);
      return fleet;
    });
    opened.push(...(await Promise.all(next)));
  }
  return opened;
}

/** Emits one event for each healthy target every second, for some seconds. Returns how late each event arrived. */
async function load(healthy: readonly Fleet[], prefix: string): Promise<readonly number[]> {
  const before = world.receiver.received.length;
  for (let second = 0; second < SECONDS; second += 1) {
    const startedAtMs = Date.now();
    await world.emitMany(healthy, TARGETS);
    await delay(Math.max(0, 1_000 - (Date.now() - startedAtMs)));
  }
  await delay(1_000);
  const got = world.receiver.received.slice(before).filter((one) => one.path.startsWith(prefix));
  const ids = got.map((one) => one.deliveryId);
  const rows = await world.database<{ delivery_id: number; created_at: Date }[]>`
    select delivery_id, created_at from webhook_deliveries where delivery_id = any(${ids}::bigint[])`;
  const createdAtMs = new Map(rows.map((row) => [row.delivery_id, row.created_at.getTime()]));
  return got.map((one) => one.atMs - (createdAtMs.get(one.deliveryId) ?? 0)).toSorted((a, b) => a - b);
}

test("a hundred targets that never answer, and a hundred healthy ones: deliveries to these arrive within a second", async () => {
  const healthy = await fleets("/healthy", TARGETS);
  const hanging = await fleets("/pit", TARGETS);
  for (let at = 0; at < TARGETS; at += 1) world.receiver.behave(`/pit/${at}`, () => "hang");
  // Targets that have answered in time count as prompt.
  await world.emitMany(healthy, TARGETS);
  await waitFor("an answer of each", async () => (await world.countDelivered()) === TARGETS);
  await world.emitMany(hanging, TARGETS * 5);
  await waitFor(
    "the tar-hanging at work",
    () => world.receiver.received.filter((one) => one.path.startsWith("/pit/")).length >= TARGETS,
  );
  const beside = await load(healthy, "/healthy/");
  expect(beside.length).toBeGreaterThanOrEqual(TARGETS * SECONDS * 0.95);
  expect(beside[Math.ceil(beside.length * 0.99) - 1]).toBeLessThan(1_000);
  await world.pauseEndpoints(hanging);
});
