/** Owner, fleet, deadline and pause act at once, on real PostgreSQL: the first one decides, and all answers agree. */
import { setTimeout as delay } from "node:timers/promises";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { nextTaskStatus, type ServingTaskEvent, type ServingTaskStatus } from "../../machines/serving-task.ts";
import * as pauseMessages from "../../services/bus/messages/filial-robotics.ts";
import * as taskMessages from "../../services/bus/messages/serving-tasks.ts";
import type { BusRefusal } from "../../services/bus/refusals.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { addRoboticsMetrics } from "../../services/robotics/metrics.ts";
import { expireOffers } from "../../services/robotics/serving-tasks.ts";
import { type Fleet, type Place, type RoboticsWorld, startRoboticsWorld } from "./robotics-world.ts";

let world: RoboticsWorld;
let place: Place;
let fleet: Fleet;
beforeAll(async () => {
  world = await startRoboticsWorld();
  // A second process of the service: both answer requests, and both expire offers.
  await world.addService();
  place = await world.openPlace();
  fleet = await world.addFleet(place);
});
afterAll(() => world.stop());

type Outcome = { readonly status: ServingTaskStatus } | { readonly refused: BusRefusal };

async function outcomeOf(asked: Promise<{ readonly task: taskMessages.ServingTask }>): Promise<Outcome> {
  try {
    return { status: (await asked).task.status };
  } catch (error) {
    if (error instanceof RefusedError) return { refused: error.refusal };
    throw error;
  }
}

/** A deadline so late that it has no effect. */
const FAR_MS = 60_000;
/** How many races a test has. They differ in each run; `npm run soak` has more (RACE_ROUNDS). */
const RACES = Number(process.env["RACE_ROUNDS"] ?? 50);
const ACTS = ["accept", "complete", "cancel", "expire"] as const;
type Act = (typeof ACTS)[number];

const metrics = addRoboticsMetrics(undefined, { oldestDueAgeMs: async () => 0 });

async function run(act: Act, taskId: number): Promise<Outcome | undefined> {
  const consumer = fleet.caller;
  switch (act) {
    case "accept":
      return outcomeOf(world.ask(taskMessages.acceptServingTask, { consumer, taskId }));
    case "complete":
      return outcomeOf(world.ask(taskMessages.completeServingTask, { consumer, taskId }));
    case "cancel":
      return outcomeOf(world.ask(taskMessages.cancelServingTask, { caller: place.owner, taskId, reason: "A race." }));
    case "expire":
      await expireOffers({ database: world.database, metrics });
      return undefined;
  }
}

/** The task's entries in the audit log, as events of the machine, in order. */
async function story(taskId: number): Promise<ServingTaskEvent["type"][]> {
  const entries = await world.database<{ action: string }[]>`
    select action from robotics_trail where subject_kind = 'serving_task' and subject_id = ${taskId} order by event_id`;
  const words: Record<string, ServingTaskEvent["type"]> = {
    serving_task_accepted: "ACCEPT",
    serving_task_completed: "COMPLETE",
    serving_task_cancelled: "CANCEL",
    serving_task_expired: "EXPIRE",
  };
  return entries.flatMap(({ action }) => words[action] ?? []);
}

async function eventTypes(taskId: number): Promise<string[]> {
  const events = await world.events(place.filialId);
  return events.flatMap(({ eventType, payload }) =>
    "task_id" in payload && payload.task_id === taskId ? [eventType] : [],
  );
}

describe("accept, complete, cancel and the deadline at the same time", () => {
  test("give one history that the machine allows, and every answer agrees with it", async () => {
    const race = fc.record({
      acts: fc.array(fc.tuple(fc.constantFrom(...ACTS), fc.integer({ min: 0, max: 12 })), {
        minLength: 2,
        maxLength: 8,
      }),
      /** When the offer's deadline is, after the start of the race. */
      deadlineMs: fc.oneof(fc.integer({ min: -5, max: 20 }), fc.constant(FAR_MS)),
    });
    await fc.assert(
      fc.asyncProperty(race, async ({ acts, deadlineMs }) => {
        const { taskId } = await world.offer(place, fleet);
        await world.makeOverdue(taskId, -deadlineMs);
        const outcomes = await Promise.all(
          acts.map(async ([act, afterMs]) => {
            await delay(afterMs);
            return { act, outcome: await run(act, taskId) };
          }),
        );
        // An offer past its deadline expires without a request. Nothing changes after that.
        const isOver = deadlineMs < FAR_MS;
        const readTask = async (): Promise<taskMessages.ServingTask> => {
          const { task } = await world.ask(taskMessages.getServingTask, { caller: place.owner, taskId });
          if (isOver && task.status === "offered") throw new Error("The offer does not expire.");
          return task;
        };
        const task = await vi.waitFor(readTask, { timeout: 30_000, interval: 20 });
        const happened = await story(taskId);

        // There is one history. The machine accepts each event, so exactly one of accept, cancel and expire comes first.
        let status: ServingTaskStatus | undefined = "offered";
        for (const type of happened) status = status === undefined ? undefined : nextTaskStatus(status, type);
        expect(status).toBe(task.status);
        const published = { CANCEL: "serving_task.cancelled", EXPIRE: "serving_task.expired" } as const;
        const expected = happened.flatMap((type) => (type === "CANCEL" || type === "EXPIRE" ? [published[type]] : []));
        expect(await eventTypes(taskId)).toEqual(["serving_task.offered", ...expected]);

        const words = { accept: "ACCEPT", complete: "COMPLETE", cancel: "CANCEL" } as const;
        for (const { act, outcome } of outcomes) {
          if (outcome === undefined || act === "expire") continue;
          if ("status" in outcome) {
            // A command that was answered with success is in the history.
            expect(happened).toContain(words[act]);
          } else if (outcome.refused.code === "task_expired") {
            expect([act, happened]).toEqual(["accept", ["EXPIRE"]]);
          } else {
            // A refusal names a status that the task had at some time, and that does not allow the command.
            expect(outcome.refused.code).toBe("task_not_actionable");
            const seen = outcome.refused.status as ServingTaskStatus;
            const had = happened.reduce<ServingTaskStatus[]>(
              (all, type) => [...all, nextTaskStatus(all.at(-1) ?? "offered", type) ?? "offered"],
              ["offered"],
            );
            expect(had).toContain(seen);
            expect(nextTaskStatus(seen, words[act])).toBeUndefined();
          }
        }
      }),
      { numRuns: RACES },
    );
  });
});

describe("the deadline of an offer", () => {
  /** Locks the task's row for `heldMs` and sets its deadline to `deadlineMs` from now, while the command runs. */
  async function heldWhile<T>(
    { taskId, deadlineMs, heldMs }: { readonly taskId: number; readonly deadlineMs: number; readonly heldMs: number },
    ask: () => Promise<T>,
  ): Promise<T> {
    const isHeld = Promise.withResolvers<void>();
    const holding = world.database.begin(async (sql) => {
      await sql`
        update serving_tasks set expires_at = clock_timestamp() + ${deadlineMs}::float8 * interval '1 millisecond'
        where task_id = ${taskId}`;
      isHeld.resolve();
      await delay(heldMs);
    });
    await isHeld.promise;
    const asked = ask();
    await holding;
    return await asked;
  }

  test.each([
    ["has passed", { deadlineMs: -1, heldMs: 100 }],
    ["passes while the task is waited for", { deadlineMs: 150, heldMs: 400 }],
  ])("a deadline that %s, before any poll: the command is refused, and the offer expires", async (_when, times) => {
    for (const act of ["accept", "cancel", "complete"] as const) {
      const { taskId } = await world.offer(place, fleet);
      const outcome = await heldWhile({ taskId, ...times }, () => run(act, taskId));
      const code = act === "accept" ? "task_expired" : "task_not_actionable";
      expect(outcome, act).toEqual({ refused: { code, status: "expired" } });
      // The refusal and the end of the offer are one transaction, so both are there at the answer.
      expect(await story(taskId)).toEqual(["EXPIRE"]);
      expect(await eventTypes(taskId)).toEqual(["serving_task.offered", "serving_task.expired"]);
    }
  });
});

describe("a pause of a filial", () => {
  test("after its answer: no offer and no acceptance takes effect, whatever was in progress", async () => {
    for (let round = 0; round < 12; round += 1) {
      const own = await world.openPlace();
      const robots = await world.addFleet(own);
      const { owner: caller, filialId } = own;
      const open = await Promise.all(Array.from({ length: 8 }, () => world.offer(own, robots)));
      const accepting = open.map(({ taskId }) =>
        world.ask(taskMessages.acceptServingTask, { consumer: robots.caller, taskId }),
      );
      const offering = Array.from({ length: 4 }, () => world.offer(own, robots));
      const pause = { caller, filialId, reason: "Fire drill." };
      const pausing = Array.from({ length: 3 }, () => world.ask(pauseMessages.pauseFilialRobotics, pause));
      const results = await Promise.allSettled([...accepting, ...offering]);
      for (const { robotics: paused } of await Promise.all(pausing)) expect(paused.paused).toBe(true);
      const refused = results.flatMap((one) => (one.status === "rejected" ? [one.reason as RefusedError] : []));
      for (const error of refused) expect(error.refusal).toMatchObject({ code: "robotics_paused" });

      const entries = await world.database<{ action: string }[]>`
        select action from robotics_trail where organization_id = ${own.organizationId} order by event_id`;
      const actions = entries.map(({ action }) => action);
      expect(actions.filter((action) => action === "robotics_paused")).toHaveLength(1);
      expect(actions.slice(actions.indexOf("robotics_paused") + 1)).toEqual([]);
      const done = actions.filter((action) => /accepted|offered/.test(action)).length;
      expect(done).toBe(open.length + results.length - refused.length);
      expect((await world.events(filialId)).filter(({ eventType }) => eventType === "robotics.paused")).toHaveLength(1);
    }
  });
});

test("many offers past their deadline, and several processes that poll for them: each offer expires once", async () => {
  const own = await world.openPlace();
  const robots = await world.addFleet(own);
  const tasks: Awaited<ReturnType<RoboticsWorld["offer"]>>[] = [];
  // Only so many at once as can wait for the filial's row within PostgreSQL's lock timeout.
  for (let turn = 0; turn < 12; turn += 1) {
    tasks.push(...(await Promise.all(Array.from({ length: 10 }, () => world.offer(own, robots)))));
  }
  const ids = tasks.map(({ taskId }) => taskId);
  await world.database`update serving_tasks set expires_at = clock_timestamp() where task_id = any(${ids})`;
  const polls = Array.from({ length: 6 }, () => expireOffers({ database: world.database, metrics }));
  await Promise.all(polls);
  const expired = async () =>
    (await world.events(own.filialId)).flatMap(({ eventType, payload }) =>
      eventType === "serving_task.expired" && "task_id" in payload ? [payload.task_id] : [],
    );
  await expect.poll(async () => (await expired()).length).toBeGreaterThanOrEqual(ids.length);
  expect((await expired()).toSorted((a, b) => a - b)).toEqual(ids.toSorted((a, b) => a - b));
});
