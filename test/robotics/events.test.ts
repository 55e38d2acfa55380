/** The events that consumers receive: only the listed fields, once for each change, in the order of the commits. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as pauseMessages from "../../services/bus/messages/filial-robotics.ts";
import { ROBOTICS_PAYLOADS } from "../../services/bus/messages/robotics-events.ts";
import * as taskMessages from "../../services/bus/messages/serving-tasks.ts";
import type { RequestOf } from "../../services/bus/operation.ts";
import { ROBOTICS_EVENTS } from "../../services/bus/streams.ts";
import { type RoboticsWorld, startRoboticsWorld } from "./robotics-world.ts";

let world: RoboticsWorld;
beforeAll(async () => {
  world = await startRoboticsWorld();
});
afterAll(() => world.stop());

/** The number of tasks that exist at the same time. */
const LIVES = 10;
const MANIFEST = "Mrs Smith's birthday cake";
const DESTINATION = "Elm Street 5, second floor";
const DETAILS = "Ring twice, key under the mat";

test("events: contain no manifest and no destination, wherever they are stored", async () => {
  const place = await world.openPlace();
  const fleet = await world.addFleet(place);
  const { caller: consumer } = fleet;
  const carried: Partial<RequestOf<typeof taskMessages.offerServingTask>> = {
    leg: "courier",
    manifest: [{ name: MANIFEST, quantity: 1 }],
    destination: { name: DESTINATION, details: DETAILS },
  };
  const offer = () => world.offer(place, fleet, carried);
  const caller = place.owner;

  const cancelled = await offer();
  await world.ask(taskMessages.acceptServingTask, { consumer, taskId: cancelled.taskId });
  await world.ask(taskMessages.cancelServingTask, { caller, taskId: cancelled.taskId, reason: "No guest." });
  const completed = await offer();
  await world.ask(taskMessages.acceptServingTask, { consumer, taskId: completed.taskId });
  await world.ask(taskMessages.completeServingTask, { consumer, taskId: completed.taskId });
  const expired = await offer();
  await world.makeOverdue(expired.taskId);
  const readStatus = async () =>
    (await world.ask(taskMessages.getConsumerTask, { consumer, taskId: expired.taskId })).task.status;
  await expect.poll(readStatus).toBe("expired");
  const pause = { caller, filialId: place.filialId, reason: "Fire drill." };
  await world.ask(pauseMessages.pauseFilialRobotics, pause);
  await world.ask(pauseMessages.resumeFilialRobotics, pause);

  const published = await world.published(place.filialId, 7);
  expect(published.map(({ event }) => [event.eventType, event.consumerId])).toEqual([
    ["serving_task.offered", fleet.consumerId],
    ["serving_task.cancelled", fleet.consumerId],
    ["serving_task.offered", fleet.consumerId],
    ["serving_task.offered", fleet.consumerId],
    ["serving_task.expired", fleet.consumerId],
    ["robotics.paused", null],
    ["robotics.resumed", null],
  ]);
  for (const { event } of published) {
    expect(Object.keys(event.payload).toSorted()).toEqual(
      Object.keys(ROBOTICS_PAYLOADS[event.eventType].shape).toSorted(),
    );
  }
  const task = { task_id: expired.taskId, display_number: 3, leg: "courier" };
  expect(published[3]?.event.payload).toEqual({
    ...task,
    status: "offered",
    expires_at: new Date(expired.expiresAtMs).toISOString(),
  });
  expect(published[4]?.event.payload).toEqual({ ...task, status: "expired" });
  expect(published[5]?.event.payload).toEqual({ filial_id: place.filialId });

  const { state } = await world.bus.jsm.streams.info(ROBOTICS_EVENTS.name);
  const stored: string[] = [];
  for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq += 1) {
    const message = await world.bus.jsm.streams.getMessage(ROBOTICS_EVENTS.name, { seq });
    stored.push(`${message?.subject} ${JSON.stringify([...(message?.header ?? [])])} ${message?.string()}`);
  }
  const [{ rows }] = await world.database<[{ rows: string }]>`select string_agg(o::text, ' ') as rows from outbox o`;
  const everything = stored.join(" ") + rows;
  expect(everything).toContain("serving_task.offered");
  for (const secret of [MANIFEST, DESTINATION, DETAILS, "Smith", "Elm", "manifest", "destination"]) {
    expect(everything).not.toContain(secret);
  }
});

test("an event's time: the time of its change", async () => {
  const place = await world.openPlace();
  const fleet = await world.addFleet(place);
  const { owner: caller, filialId } = place;
  const { taskId } = await world.offer(place, fleet);
  await delay(20);
  const { task } = await world.ask(taskMessages.cancelServingTask, { caller, taskId, reason: "No guest." });
  await delay(20);
  const change = { caller, filialId, reason: "Fire drill." };
  const { robotics: paused } = await world.ask(pauseMessages.pauseFilialRobotics, change);
  const at = (ms: number | null): string => new Date(ms ?? 0).toISOString();
  expect((await world.events(filialId)).map(({ eventType, createdAt }) => [eventType, createdAt])).toEqual([
    ["serving_task.offered", at(task.offeredAtMs)],
    ["serving_task.cancelled", at(task.endedAtMs)],
    ["robotics.paused", at(paused.changedAtMs)],
  ]);
  expect(task.endedAtMs).toBeGreaterThan(task.offeredAtMs);
});

test("the events of a filial: published in the order of their commits, from any process", async () => {
  const place = await world.openPlace();
  const fleet = await world.addFleet(place);
  const { owner: caller, filialId } = place;
  await world.addService();
  const lives = Array.from({ length: LIVES }, async (_, index) => {
    const { taskId } = await world.offer(place, fleet);
    if (index % 2 === 0) await world.ask(taskMessages.cancelServingTask, { caller, taskId, reason: "No guest." });
    else await world.makeOverdue(taskId);
  });
  await Promise.all(lives);
  const published = await world.published(filialId, 2 * LIVES);
  const ids = published.map(({ eventId }) => eventId);
  expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  const rows = await world.database<{ outbox_id: number }[]>`
    select outbox_id from outbox where key = ${`filial.${filialId}`} order by outbox_id`;
  expect(ids).toEqual(rows.map((row) => row.outbox_id));
  const offered = new Set<number>();
  const ended: number[] = [];
  for (const { event } of published) {
    if (!("task_id" in event.payload)) throw new Error("This filial was never paused.");
    const { task_id: taskId } = event.payload;
    if (event.eventType === "serving_task.offered") offered.add(taskId);
    else {
      expect(offered.has(taskId), "it was offered before it ended").toBe(true);
      ended.push(taskId);
    }
  }
  expect(new Set(ended).size).toBe(ended.length);
  expect(ended).toHaveLength(LIVES);
});
