/** A suspended consumer: nothing is sent to it, and nothing is lost for it. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { summarizeDue } from "../../services/webhook-signer/sql/owners.ts";
import { begunAfter, type Fleet, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

// `afterAll` restores the limit, because the worker's next file uses the same object.
const { sweepIntervalMs } = SIGNER_LIMITS;
let world: SignerWorld;
beforeAll(async () => {
  Object.assign(SIGNER_LIMITS, { sweepIntervalMs: 1_000 });
  world = await startSignerWorld();
  await world.addRelay();
});
afterAll(async () => {
  await world.stop();
  Object.assign(SIGNER_LIMITS, { sweepIntervalMs });
});

const setStatus = ({ consumerId }: Fleet, status: "active" | "suspended") =>
  world.database`update robotics_consumers set status = ${status} where consumer_id = ${consumerId}`;

test("a suspended consumer: gets nothing, its offers lapse; readmitted, it gets the rest and its filial's events", async () => {
  const fleet = await world.openFleet();
  const without = await world.addConsumer(fleet);
  await world.addEndpoint(fleet, "/suspended");
  await setStatus(fleet, "suspended");
  await setStatus(without, "suspended");
  await world.emit(fleet, { eventType: "serving_task.cancelled" });
  await world.emit(fleet, { eventType: "robotics.paused" });
  await world.emit(fleet, { eventType: "serving_task.offered", expiresInMs: 500 });
  await waitFor("their rows", async () => (await world.deliveries(fleet)).length === 3);
  await waitFor("the end of the offer", async () => (await world.deliveries(fleet))[2]?.status === "lapsed");
  expect(world.receiver.at("/suspended")).toEqual([]);
  expect((await world.deliveries(fleet)).map((one) => one.status)).toEqual(["pending", "pending", "lapsed"]);
  expect((await world.deliveries(without)).map((one) => [one.eventType, one.status])).toEqual([
    ["robotics.paused", "unsent"],
  ]);
  expect((await summarizeDue(world.database, 10)).rows).toBe(0);
  await setStatus(fleet, "active");
  await waitFor("the rest", () => world.receiver.at("/suspended").length === 2);
  expect(
    world.receiver
      .at("/suspended")
      .map((one) => one.eventType)
      .toSorted(),
  ).toEqual(["robotics.paused", "serving_task.cancelled"]);
});

test("deliveries read before a suspension: not sent one second after it", async () => {
  const fleet = await world.openFleet();
  await world.addEndpoint(fleet, "/cut-off");
  const answer = { afterMs: 200 };
  world.receiver.behave("/cut-off", () => ({ status: 200, ...answer }));
  await world.emitMany([fleet], 120);
  await waitFor("some", () => world.receiver.at("/cut-off").length >= 40);
  answer.afterMs = 700;
  await delay(300);
  await setStatus(fleet, "suspended");
  const atMs = Date.now();
  await delay(4_000);
  expect([...(await begunAfter(world, fleet, atMs + 1_500))]).toEqual([]);
  answer.afterMs = 0;
  await setStatus(fleet, "active");
  await waitFor("the rest", () => world.receiver.at("/cut-off").length === 120);
});
