/** The moments of a task: published moments equal stored ones, and nothing is accepted after its deadline. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as taskMessages from "../../services/bus/messages/serving-tasks.ts";
import { setTaskStatus } from "../../services/robotics/sql/serving-tasks.ts";
import { type Fleet, type Place, type RoboticsWorld, startRoboticsWorld } from "./robotics-world.ts";

let world: RoboticsWorld;
let place: Place;
let fleet: Fleet;
beforeAll(async () => {
  world = await startRoboticsWorld();
  place = await world.openPlace();
  fleet = await world.addFleet(place);
});
afterAll(() => world.stop());

const readTask = async (taskId: number) =>
  (await world.ask(taskMessages.getConsumerTask, { consumer: fleet.caller, taskId })).task;
/** When the last event of that type happened, as consumers receive it. */
const publishedMomentOf = async (type: string): Promise<string | undefined> =>
  (await world.events(place.filialId)).findLast(({ eventType }) => eventType === type)?.createdAt;
const iso = (ms: number | null): string => new Date(ms ?? 0).toISOString();

describe("the end of a task", () => {
  test("is published with its stored moment, cancelled or expired", async () => {
    const cancelled = await world.offer(place, fleet);
    await world.ask(taskMessages.cancelServingTask, {
      caller: place.owner,
      taskId: cancelled.taskId,
      reason: "No guest.",
    });
    expect(await publishedMomentOf("serving_task.cancelled")).toBe(iso((await readTask(cancelled.taskId)).endedAtMs));

    const expiring = await world.offer(place, fleet);
    await world.makeOverdue(expiring.taskId);
    await expect.poll(async () => (await readTask(expiring.taskId)).status).toBe("expired");
    const { endedAtMs, expiresAtMs } = await readTask(expiring.taskId);
    expect(await publishedMomentOf("serving_task.expired")).toBe(iso(endedAtMs));
    expect(endedAtMs).toBeGreaterThan(expiresAtMs);
  });
});

test("an acceptance decided before the deadline and written after it: counts as of the deadline", async () => {
  const { taskId } = await world.offer(place, fleet);
  const written = await world.database.begin(async (sql) => {
    // Between the poll of the clock and the write a transaction may stall for as long as it likes.
    await sql`
      update serving_tasks set offered_at = offered_at - interval '1 hour', expires_at = now() - interval '1 minute'
      where task_id = ${taskId}`;
    return await setTaskStatus(sql, taskId, { status: "accepted" });
  });
  expect(written.accepted_at).toEqual(written.expires_at);
  const inTime = await world.offer(place, fleet);
  const { task } = await world.ask(taskMessages.acceptServingTask, { consumer: fleet.caller, taskId: inTime.taskId });
  expect(task.acceptedAtMs).toBeLessThan(task.expiresAtMs);
});
