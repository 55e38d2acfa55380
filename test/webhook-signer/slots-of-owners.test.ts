/** The slow targets of an owner take only slots of this owner, and none that prompt or new targets need. All have one limit. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { type Fleet, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  // The signer is a separate process: on one event loop with the receiver and the test, each would wait for the others.
  world = await startSignerWorld({ signers: 0 });
  await world.addSignerProcess();
});
afterAll(() => world.stop());

test("one owner: at most 16 requests, at most 4 to one endpoint, and slow targets leave room for the others", async () => {
  const consumers = [await world.openFleet()];
  const [first] = consumers;
  if (first === undefined) return;
  for (let at = 0; at < 7; at += 1) consumers.push(await world.addConsumer(first));
  for (const [at, consumer] of consumers.entries()) {
    for (let endpoint = 0; endpoint < 5; endpoint += 1) {
      const path = `/owner/${at}-${endpoint}`;
      await world.addEndpoint(consumer, path);
      // The ten targets of the first two consumers never answer.
      world.receiver.behave(path, () => (at < 2 ? "hang" : { status: 200, afterMs: 20 }));
    }
  }
  await world.emitMany(consumers, 8);
  await waitFor(
    "the first ones",
    () => world.receiver.received.filter((one) => /^\/owner\/[2-7]/.test(one.path)).length >= 30,
  );
  await world.emitMany(consumers.slice(2), 120);
  const isOver = () => world.receiver.received.filter((one) => /^\/owner\/[2-7]/.test(one.path)).length >= 30 + 120 * 5;
  await waitFor("the healthy ones", isOver);
  expect(world.receiver.mostAtOnce("/owner/")).toBeLessThanOrEqual(SIGNER_LIMITS.inFlightPerOwner);
  expect(world.receiver.mostAtOnce("/owner/")).toBeGreaterThan(SIGNER_LIMITS.inFlightPerOwner - 4);
  for (let endpoint = 0; endpoint < 5; endpoint += 1) {
    expect(world.receiver.mostAtOnce(`/owner/5-${endpoint}`)).toBeLessThanOrEqual(SIGNER_LIMITS.inFlightPerEndpoint);
  }
  await world.pauseEndpoints(consumers);
});

/** Emits an event to each fleet. Returns how long each took to arrive. */
async function lateness(to: Readonly<Record<string, Fleet>>, paths: Readonly<Record<string, string>>) {
  const startedAtMs = Date.now();
  const before = Object.fromEntries(Object.values(paths).map((path) => [path, world.receiver.at(path).length]));
  await world.emitMany(Object.values(to), Object.keys(to).length);
  const arrived = Object.entries(paths).map(async ([name, path]) => {
    await waitFor(`the delivery to ${name}`, () => world.receiver.at(path).length > (before[path] ?? 0));
    return [name, (world.receiver.at(path).at(-1)?.atMs ?? 0) - startedAtMs] as const;
  });
  return await Promise.all(arrived);
}

test("more slow targets than slots: prompt and new targets are not delayed", async () => {
  const OWNERS = 16;
  const SLOW_MS = 4_000;
  const slow: Fleet[] = [];
  const paths = new Set<string>();
  for (let owner = 0; owner < OWNERS; owner += 1) {
    const first = await world.openFleet();
    const consumers = [first];
    for (let at = 1; at < 4; at += 1) consumers.push(await world.addConsumer(first));
    for (const [at, consumer] of consumers.entries()) {
      for (let endpoint = 0; endpoint < 5; endpoint += 1) {
        const path = `/slow-but-good/${owner}-${at}-${endpoint}`;
        await world.addEndpoint(consumer, path);
        world.receiver.behave(path, () => ({ status: 200, afterMs: SLOW_MS }));
        paths.add(path);
      }
    }
    slow.push(...consumers);
  }
  const [neighbour] = slow;
  if (neighbour === undefined) return;
  const prompt = { ofAnother: await world.openFleet(), ofTheSame: await world.addConsumer(neighbour) };
  const promptPaths = { ofAnother: "/prompt/another", ofTheSame: "/prompt/same" };
  for (const name of ["ofAnother", "ofTheSame"] as const) await world.addEndpoint(prompt[name], promptPaths[name]);
  await lateness(prompt, promptPaths);
  await world.emitMany(slow, slow.length * 8);
  await waitFor(
    "each of the slow ones at work",
    () => [...paths].every((path) => world.receiver.at(path).length > 0),
    60_000,
  );
  // By now each has answered once, and counts as slow.
  await delay(SLOW_MS + 2_000);
  const fresh = { ofAnother: await world.openFleet(), ofTheSame: await world.addConsumer(neighbour) };
  const freshPaths = { ofAnother: "/fresh/another", ofTheSame: "/fresh/same" };
  for (const name of ["ofAnother", "ofTheSame"] as const) await world.addEndpoint(fresh[name], freshPaths[name]);
  for (const [name, ms] of [...(await lateness(fresh, freshPaths)), ...(await lateness(prompt, promptPaths))]) {
    expect(ms, name).toBeLessThan(2_000);
  }
  // The slow targets are still busy.
  const [left] = await world.database<[{ count: number }]>`
    select count(*)::int as count from webhook_deliveries
    where status = 'pending' and organization_id = any(${slow.map((fleet) => fleet.organizationId)}::bigint[])`;
  expect(left.count).toBeGreaterThan(OWNERS * 20 * 2);
  expect(world.receiver.mostAtOnce("/slow-but-good/")).toBeLessThanOrEqual(256);
  expect(world.receiver.mostAtOnce("/slow-but-good/")).toBeGreaterThan(140);
  await world.pauseEndpoints(slow);
});

test("all owners together: at most 256 requests in progress", async () => {
  const many: Fleet[] = [];
  for (let owner = 0; owner < 24; owner += 1) {
    const first = await world.openFleet();
    for (const [at, consumer] of [first, await world.addConsumer(first)].entries()) {
      for (let endpoint = 0; endpoint < 2; endpoint += 1) {
        const path = `/together/${owner}-${at}-${endpoint}`;
        await world.addEndpoint(consumer, path);
        world.receiver.behave(path, () => ({ status: 200, afterMs: 700 }));
      }
      many.push(consumer);
    }
  }
  await world.emitMany(many, many.length * 20);
  await waitFor(
    "the most",
    () => world.receiver.received.filter((one) => one.path.startsWith("/together/")).length > 1_200,
    40_000,
  );
  // A few slots are kept for untried targets.
  expect(world.receiver.mostAtOnce("/together/")).toBeGreaterThan(200);
  expect(world.receiver.mostAtOnce("/together/")).toBeLessThanOrEqual(256);
});
