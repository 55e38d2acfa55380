/** The retention of tasks, and what the robotics service reports about itself. */
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as eventMessages from "../../services/bus/messages/events.ts";
import { roboticsHealth } from "../../services/bus/messages/health.ts";
import * as taskMessages from "../../services/bus/messages/serving-tasks.ts";
import { addRoboticsMetrics } from "../../services/robotics/metrics.ts";
import { taskRetention } from "../../services/robotics/retention.ts";
import { acceptServingTask } from "../../services/robotics/serving-tasks.ts";
import { roboticsSettingsSchema } from "../../services/robotics/settings.ts";
import { readOldestDueAgeMs } from "../../services/robotics/sql/serving-tasks.ts";
import { createLog } from "../../services/runtime/log.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { parseSettings } from "../../services/runtime/settings.ts";
import { type Fleet, type Place, type RoboticsWorld, refusalOf, startRoboticsWorld } from "./robotics-world.ts";

let world: RoboticsWorld;
let place: Place;
let fleet: Fleet;
beforeAll(async () => {
  world = await startRoboticsWorld();
  place = await world.openPlace();
  fleet = await world.addFleet(place);
});
afterAll(() => world.stop());

test("ended tasks past their retention: deleted; open tasks and the audit log: stay", async () => {
  const { caller: consumer } = fleet;
  const cancel = (taskId: number) =>
    world.ask(taskMessages.cancelServingTask, { caller: place.owner, taskId, reason: "No guest." });
  const old = await world.offer(place, fleet, { idempotencyKey: "old" });
  const recent = await world.offer(place, fleet);
  const open = await world.offer(place, fleet);
  await world.ask(taskMessages.acceptServingTask, { consumer, taskId: open.taskId });
  await cancel(old.taskId);
  await cancel(recent.taskId);
  const ids = [old.taskId, open.taskId];
  await world.database`
    update serving_tasks set offered_at = now() - interval '9 days', ended_at = ended_at - interval '8 days'
    where task_id = any(${ids})`;
  const log = createLog({ service: "test", level: "silent" });
  const retention = taskRetention({ database: world.database, retentionDays: 8 });
  expect(await removeExpired(retention, log)).toEqual({ tasks: 1 });
  expect(await removeExpired(retention, log)).toEqual({ tasks: 0 });
  const { tasks } = await world.ask(taskMessages.listServingTasks, { caller: place.owner });
  expect(tasks.map(({ taskId }) => taskId)).toEqual([open.taskId, recent.taskId]);
  const read = { caller: place.owner, taskId: old.taskId };
  expect(await refusalOf(world.ask(taskMessages.getServingTask, read))).toMatchObject({ code: "not_found" });
  const { events: entries } = await world.ask(eventMessages.listRoboticsEvents, { caller: place.owner });
  expect(entries.some(({ subject }) => subject.kind === "serving_task" && subject.id === old.taskId)).toBe(true);
});

test("ROBOTICS_TASK_RETENTION_DAYS: validated, and applied by a service that starts", async () => {
  expect(parseSettings(roboticsSettingsSchema, {})).toEqual({ ROBOTICS_TASK_RETENTION_DAYS: 90 });
  expect(() => parseSettings(roboticsSettingsSchema, { ROBOTICS_TASK_RETENTION_DAYS: "0" })).toThrow(
    "The setting ROBOTICS_TASK_RETENTION_DAYS is not usable: it must be a whole number from 1 to 3650.",
  );
  const { taskId } = await world.offer(place, fleet);
  await world.ask(taskMessages.cancelServingTask, { caller: place.owner, taskId, reason: "No guest." });
  await world.database`update serving_tasks set ended_at = now() - interval '2 days' where task_id = ${taskId}`;
  await world.addService({ ROBOTICS_TASK_RETENTION_DAYS: "1" });
  const count = async () => (await world.database`select 1 from serving_tasks where task_id = ${taskId}`).length;
  await expect.poll(count).toBe(0);
});

test("the robotics service: reports its health and its metrics", async () => {
  expect(await world.ask(roboticsHealth, {})).toMatchObject({ databaseReady: true, fault: null });
  const registry = new Registry();
  const { database } = world;
  const metrics = addRoboticsMetrics(registry, { oldestDueAgeMs: () => readOldestDueAgeMs(database) });
  const { taskId } = await world.offer(place, fleet);
  await acceptServingTask({ database, metrics }, { consumer: fleet.caller, taskId });
  await acceptServingTask({ database, metrics }, { consumer: fleet.caller, taskId });
  const text = await registry.metrics();
  expect(text).toContain('device_payments_robotics_task_changes_total{status="accepted"} 1\n');
  expect(text).toContain("device_payments_robotics_oldest_due_offer_age_seconds 0\n");
});
