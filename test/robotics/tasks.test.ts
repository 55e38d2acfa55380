/** Serving tasks from their offer to their end, as owner and fleet see them. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { BOUNDS } from "../../services/bus/bounds.ts";
import * as consumerMessages from "../../services/bus/messages/consumers.ts";
import * as eventMessages from "../../services/bus/messages/events.ts";
import * as pauseMessages from "../../services/bus/messages/filial-robotics.ts";
import * as taskMessages from "../../services/bus/messages/serving-tasks.ts";
import { ROBOTICS_LIMITS } from "../../services/robotics/limits.ts";
import { setTaskStatus } from "../../services/robotics/sql/serving-tasks.ts";
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

const accept = (taskId: number, by = fleet) =>
  world.ask(taskMessages.acceptServingTask, { consumer: by.caller, taskId });
const complete = (taskId: number, by = fleet) =>
  world.ask(taskMessages.completeServingTask, { consumer: by.caller, taskId });
const cancel = (taskId: number, by = place) =>
  world.ask(taskMessages.cancelServingTask, { caller: by.owner, taskId, reason: "No guest." });
const readTask = async (taskId: number) =>
  (await world.ask(taskMessages.getConsumerTask, { consumer: fleet.caller, taskId })).task;
const eventsOf = async (taskId: number) =>
  (await world.events(place.filialId)).filter(({ payload }) => "task_id" in payload && payload.task_id === taskId);
const typesOf = async (filialId: number) => (await world.events(filialId)).map(({ eventType }) => eventType);

describe("a serving task", () => {
  test("offered, accepted and completed: each repetition changes nothing", async () => {
    const offered = await world.offer(place, fleet);
    expect(offered).toMatchObject({ status: "offered", acceptedAtMs: null, endedAtMs: null });
    expect(offered.expiresAtMs - offered.offeredAtMs).toBe(60_000);
    const { task: accepted } = await accept(offered.taskId);
    expect(accepted).toMatchObject({ status: "accepted", endedAtMs: null });
    expect((await accept(offered.taskId)).task).toEqual(accepted);
    const { task: completed } = await complete(offered.taskId);
    expect(completed).toMatchObject({ status: "completed", acceptedAtMs: accepted.acceptedAtMs });
    expect((await complete(offered.taskId)).task).toEqual(completed);
    expect(await refusalOf(cancel(offered.taskId))).toMatchObject({ code: "task_not_actionable", status: "completed" });
  });

  test("completed before it is accepted: refused", async () => {
    const { taskId } = await world.offer(place, fleet);
    expect(await refusalOf(complete(taskId))).toMatchObject({ code: "task_not_actionable", status: "offered" });
  });

  test("cancelled after its offer or its acceptance: once, with the first reason", async () => {
    for (const isAccepted of [false, true]) {
      const { taskId } = await world.offer(place, fleet);
      if (isAccepted) await accept(taskId);
      const { task } = await cancel(taskId);
      expect(task).toMatchObject({ status: "cancelled", cancelReason: "No guest." });
      const again = { caller: place.owner, taskId, reason: "Another reason." };
      expect((await world.ask(taskMessages.cancelServingTask, again)).task).toEqual(task);
      expect(await refusalOf(accept(taskId))).toMatchObject({ code: "task_not_actionable", status: "cancelled" });
      expect((await eventsOf(taskId)).map(({ eventType }) => eventType)).toEqual([
        "serving_task.offered",
        "serving_task.cancelled",
      ]);
    }
  });

  test("an offer past its deadline: expires soon without a request, and its fleet is notified once", async () => {
    const { taskId } = await world.offer(place, fleet);
    await world.makeOverdue(taskId);
    await expect.poll(async () => (await readTask(taskId)).status).toBe("expired");
    await delay(3 * ROBOTICS_LIMITS.expiryIntervalMs);
    expect((await eventsOf(taskId)).map(({ eventType }) => eventType)).toEqual([
      "serving_task.offered",
      "serving_task.expired",
    ]);
    expect(await refusalOf(accept(taskId))).toMatchObject({ code: "task_expired", status: "expired" });
    expect(await refusalOf(cancel(taskId))).toMatchObject({ code: "task_not_actionable", status: "expired" });
  });

  test("an accepted task past its deadline: does not expire", async () => {
    const { taskId } = await world.offer(place, fleet);
    await accept(taskId);
    await world.makeOverdue(taskId, 10_000);
    await delay(3 * ROBOTICS_LIMITS.expiryIntervalMs);
    expect((await complete(taskId)).task.status).toBe("completed");
  });

  test("used by another fleet or organization: not found", async () => {
    const elsewhere = await world.openPlace();
    const neighbour = await world.addFleet(place);
    const stranger = await world.addFleet(elsewhere);
    const { taskId } = await world.offer(place, fleet);
    for (const other of [neighbour, stranger]) {
      const { caller: consumer } = other;
      expect(await refusalOf(accept(taskId, other))).toMatchObject({ code: "not_found" });
      expect(await refusalOf(complete(taskId, other))).toMatchObject({ code: "not_found" });
      expect(await refusalOf(world.ask(taskMessages.getConsumerTask, { consumer, taskId }))).toMatchObject({
        code: "not_found",
      });
      expect((await world.ask(taskMessages.listConsumerTasks, { consumer })).tasks).toEqual([]);
    }
    expect(await refusalOf(cancel(taskId, elsewhere))).toMatchObject({ code: "not_found" });
    const foreign = { caller: elsewhere.owner, taskId };
    expect(await refusalOf(world.ask(taskMessages.getServingTask, foreign))).toMatchObject({ code: "not_found" });
    expect(await refusalOf(world.offer(elsewhere, fleet))).toMatchObject({ code: "not_found" });
  });
});

describe("an offer with an Idempotency-Key", () => {
  test("many requests with the key, also at the same time: one task", async () => {
    const idempotencyKey = "the same key";
    const tasks = await Promise.all(
      Array.from({ length: 8 }, async () => await world.offer(place, fleet, { idempotencyKey })),
    );
    expect(new Set(tasks.map(({ taskId }) => taskId)).size).toBe(1);
    const [first] = tasks;
    await cancel(first?.taskId ?? 0);
    expect(await world.offer(place, fleet, { idempotencyKey })).toMatchObject({
      taskId: first?.taskId,
      status: "cancelled",
    });
  });

  test("another request with the key: refused, also at another filial at the same moment", async () => {
    const idempotencyKey = "another key";
    const manifest = [{ name: "Soup", quantity: 1 }];
    const destination = { name: "Table 12", details: "By the window" };
    const request = { leg: "kitchen_to_table" as const, manifest, destination, validForMs: 60_000, idempotencyKey };
    const { taskId } = await world.offer(place, fleet, request);
    for (const changed of [
      { leg: "courier" as const },
      { manifest: [{ name: "Soup", quantity: 2 }] },
      { manifest: [{ name: "Salad", quantity: 1 }] },
      { manifest: [...manifest, ...manifest] },
      { destination: { ...destination, name: "Table 13" } },
      { destination: { ...destination, details: "By the door" } },
      { destination: { name: destination.name } },
      { validForMs: 61_000 },
    ]) {
      const other = world.offer(place, fleet, { ...request, ...changed });
      expect(await refusalOf(other), JSON.stringify(changed)).toMatchObject({ code: "idempotency_key_reused" });
    }
    const neighbour = world.offer(place, await world.addFleet(place), request);
    expect(await refusalOf(neighbour)).toMatchObject({ code: "idempotency_key_reused" });
    expect((await world.offer(place, fleet, request)).taskId).toBe(taskId);

    const [row] = await world.database<[{ filial_id: number }]>`
      insert into filials (organization_id, name) values (${place.organizationId}, 'Second') returning filial_id`;
    const second = { ...place, filialId: row.filial_id };
    const secondFleet = await world.addFleet(second);
    const both = await Promise.allSettled([
      world.offer(place, fleet, { idempotencyKey: "a third" }),
      world.offer(second, secondFleet, { idempotencyKey: "a third" }),
    ]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const [refused] = both.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
    expect(await refusalOf(Promise.reject(refused as Error))).toMatchObject({ code: "idempotency_key_reused" });
  });
});

describe("the display numbers of a filial", () => {
  test("have no gaps, despite simultaneous offers and refusals", async () => {
    const busy = await world.openPlace();
    const first = await world.addFleet(busy);
    const second = await world.addFleet(busy);
    const offers = Array.from({ length: 24 }, (_, index) => {
      if (index % 6 === 5) {
        const key = index === 5 ? {} : { leg: "courier" as const };
        return world.offer(busy, first, { idempotencyKey: "key", ...key });
      }
      return world.offer(busy, index % 2 === 0 ? first : second);
    });
    const made = (await Promise.allSettled(offers)).flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const numbers = [...new Set(made.map(({ displayNumber }) => displayNumber))].toSorted((a, b) => a - b);
    expect(numbers.length).toBeGreaterThan(20);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index + 1));
  });
});

describe("limits of robotics", () => {
  test("open tasks of a fleet: limited; when one has ended, another one is possible", async () => {
    const full = await world.addFleet(place);
    const { organizationId, filialId } = place;
    const [{ last: taken }] = await world.database<[{ last: number }]>`
      update robotics_filials set last_display_number = last_display_number + ${ROBOTICS_LIMITS.openTasks - 1}
      where filial_id = ${filialId} returning last_display_number as last`;
    await world.database`
      insert into serving_tasks (organization_id, filial_id, consumer_id, display_number, leg, manifest, destination, expires_at)
      select ${organizationId}, ${filialId}, ${full.consumerId}, ${taken}::bigint - n, 'courier', '[]', '{"name":"Door"}',
        now() + interval '1 hour'
      from generate_series(0, ${ROBOTICS_LIMITS.openTasks - 2}::bigint) as n`;
    const last = await world.offer(place, full);
    expect(await refusalOf(world.offer(place, full))).toMatchObject({ code: "busy", retryAfterMs: 5_000 });
    // An accepted task also counts, because the same robots carry it out.
    await accept(last.taskId, full);
    expect(await refusalOf(world.offer(place, full))).toMatchObject({ code: "busy", retryAfterMs: 5_000 });
    await cancel(last.taskId);
    await world.offer(place, full);
  });

  test("consumers of a filial: limited, also when they are added at once", async () => {
    const crowded = await world.openPlace();
    const most = ROBOTICS_LIMITS.consumersPerFilial;
    const asked = Array.from({ length: most + 5 }, () => world.addFleet(crowded));
    const results = await Promise.allSettled(asked);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(most);
    expect(await refusalOf(world.addFleet(crowded))).toMatchObject({ code: "conflict" });
  });
});

describe("a pause of robotics", () => {
  test("offers and acceptances are refused, accepted tasks can end, and offers expire", async () => {
    const own = await world.openPlace();
    const robots = await world.addFleet(own);
    const [underWay, other, open, overdue] = [
      await world.offer(own, robots),
      await world.offer(own, robots),
      await world.offer(own, robots),
      await world.offer(own, robots),
    ];
    for (const { taskId } of [underWay, other]) await accept(taskId, robots);
    const change = { caller: own.owner, filialId: own.filialId, reason: "Fire drill." };
    await world.ask(pauseMessages.pauseFilialRobotics, change);

    expect(await refusalOf(world.offer(own, robots))).toMatchObject({ code: "robotics_paused" });
    expect(await refusalOf(accept(open.taskId, robots))).toMatchObject({ code: "robotics_paused" });
    const status = async (taskId: number) =>
      (await world.ask(taskMessages.getConsumerTask, { consumer: robots.caller, taskId })).task.status;
    expect(await status(open.taskId)).toBe("offered");
    // A repetition gets its first answer. A task can end during a pause.
    expect((await accept(underWay.taskId, robots)).task.status).toBe("accepted");
    expect((await complete(underWay.taskId, robots)).task.status).toBe("completed");
    expect((await cancel(other.taskId, own)).task.status).toBe("cancelled");
    await world.makeOverdue(overdue.taskId);
    expect(await refusalOf(accept(overdue.taskId, robots))).toMatchObject({ code: "task_expired" });
    expect((await world.ask(taskMessages.listConsumerTasks, { consumer: robots.caller })).paused).toBe(true);

    await world.ask(pauseMessages.resumeFilialRobotics, change);
    expect((await accept(open.taskId, robots)).task.status).toBe("accepted");
  });
});

describe("the list of a fleet's tasks", () => {
  test("the current tasks by id, or those of one status, page by page", async () => {
    const own = await world.openPlace();
    const robots = await world.addFleet(own);
    const { caller: consumer } = robots;
    const ids: number[] = [];
    for (let count = 0; count < 5; count += 1) ids.push((await world.offer(own, robots)).taskId);
    const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0] = ids;
    await world.ask(taskMessages.acceptServingTask, { consumer, taskId: second });
    await world.ask(taskMessages.cancelServingTask, { caller: own.owner, taskId: third, reason: "No guest." });
    const listed = async (more: object) => {
      const { tasks, hasMore, paused } = await world.ask(taskMessages.listConsumerTasks, { consumer, ...more });
      return { ids: tasks.map(({ taskId }) => taskId), hasMore, paused };
    };
    expect(await listed({})).toEqual({ ids: [first, second, fourth, fifth], hasMore: false, paused: false });
    expect(await listed({ limit: 2 })).toEqual({ ids: [first, second], hasMore: true, paused: false });
    expect(await listed({ limit: 2, sinceId: second })).toMatchObject({ ids: [fourth, fifth], hasMore: false });
    expect(await listed({ status: "cancelled" })).toMatchObject({ ids: [third] });
    const { tasks } = await world.ask(taskMessages.listServingTasks, { caller: own.owner, limit: 2, beforeId: fifth });
    expect(tasks.map(({ taskId }) => taskId)).toEqual([fourth, third]);
    const accepted = await world.ask(taskMessages.listServingTasks, { caller: own.owner, status: "accepted" });
    expect(accepted.tasks.map(({ taskId }) => taskId)).toEqual([second]);
  });
});

describe("the list of long tasks", () => {
  test("reads little more than fits into a page, and all pages together have all tasks", async () => {
    const own = await world.openPlace();
    const robots = await world.addFleet(own);
    const { caller: consumer } = robots;
    const many = 90;
    const manifest = Array.from({ length: BOUNDS.orderLines }, () => ({ name: "€".repeat(200), quantity: 1 }));
    await world.database`
      insert into serving_tasks (organization_id, filial_id, consumer_id, display_number, leg, manifest, destination, expires_at)
      select ${own.organizationId}, ${own.filialId}, ${robots.consumerId}, n, 'courier',
        ${world.database.json(manifest)}, '{"name":"Door"}', now() + interval '1 hour'
      from generate_series(1, ${many}::bigint) as n`;
    const parse = vi.spyOn(JSON, "parse");
    const page = await world.ask(taskMessages.listConsumerTasks, { consumer, limit: BOUNDS.listed });
    const ofOwner = await world.ask(taskMessages.listServingTasks, { caller: own.owner, limit: BOUNDS.listed });
    const read = parse.mock.calls.filter(([text]) => text.startsWith("[{"));
    parse.mockRestore();
    expect([page.hasMore, ofOwner.hasMore]).toEqual([true, true]);
    // The count is for two lists, each read once.
    expect(read.length).toBeLessThan(many / 2);

    const seen = page.tasks.map(({ taskId }) => taskId);
    for (let { hasMore } = page; hasMore; ) {
      const next = await world.ask(taskMessages.listConsumerTasks, { consumer, sinceId: seen.at(-1), limit: 500 });
      expect(next.tasks.length).toBeGreaterThan(0);
      seen.push(...next.tasks.map(({ taskId }) => taskId));
      ({ hasMore } = next);
    }
    expect(new Set(seen).size).toBe(many);
    expect(seen).toHaveLength(many);
  });
});

describe("the audit log of tasks and pauses", () => {
  test("who did what and why, newest first, and never the manifest or the destination", async () => {
    const own = await world.openPlace();
    const robots = await world.addFleet(own);
    const { caller } = robots;
    const secret = { manifest: [{ name: "MANIFEST", quantity: 1 }], destination: { name: "DESTINATION" } };
    const accepted = await world.offer(own, robots, secret);
    await accept(accepted.taskId, robots);
    await cancel(accepted.taskId, own);
    const expired = await world.offer(own, robots, secret);
    await world.makeOverdue(expired.taskId);
    await expect.poll(() => typesOf(own.filialId)).toContain("serving_task.expired");
    await world.ask(pauseMessages.pauseFilialRobotics, {
      caller: own.owner,
      filialId: own.filialId,
      reason: "Fire drill.",
    });
    const page = await world.ask(eventMessages.listRoboticsEvents, { caller: own.owner, limit: 6 });
    const { events: entries, throughId } = page;
    expect(entries.map(({ action, actor }) => [action, actor.kind, actor.id])).toEqual([
      ["robotics_paused", "owner", own.owner.userId],
      ["serving_task_expired", "system", 0],
      ["serving_task_offered", "owner", own.owner.userId],
      ["serving_task_cancelled", "owner", own.owner.userId],
      ["serving_task_accepted", "robotics_consumer", caller.consumerId],
      ["serving_task_offered", "owner", own.owner.userId],
    ]);
    expect(entries[3]?.data).toEqual({ display_number: 1, reason: "No guest." });
    expect(throughId).toBe(entries.at(-1)?.eventId);
    const beforeId = throughId ?? 0;
    const rest = await world.ask(eventMessages.listRoboticsEvents, { caller: own.owner, beforeId });
    expect(rest.events.map(({ action }) => action)).toEqual(["robotics_consumer_created"]);
    expect(rest.throughId).toBeNull();
    expect(JSON.stringify([entries, rest])).not.toMatch(/MANIFEST|DESTINATION|rc_/);
  });
});

test("users who may not manage the organization: refused", async () => {
  const { cashier: caller, filialId } = place;
  const { consumerId } = fleet;
  const asked = [
    world.ask(consumerMessages.listRoboticsConsumers, { caller }),
    world.ask(consumerMessages.createRoboticsConsumer, { caller, filialId, name: "Theirs", mode: "test" }),
    world.ask(consumerMessages.changeRoboticsConsumer, { caller, consumerId, name: "Theirs" }),
    world.ask(consumerMessages.resetRoboticsCredential, { caller, consumerId }),
    world.offer({ ...place, owner: caller }, fleet),
    world.ask(taskMessages.cancelServingTask, { caller, taskId: 1, reason: "Theirs" }),
    world.ask(taskMessages.listServingTasks, { caller }),
    world.ask(taskMessages.getServingTask, { caller, taskId: 1 }),
    world.ask(pauseMessages.getFilialRobotics, { caller, filialId }),
    world.ask(pauseMessages.pauseFilialRobotics, { caller, filialId, reason: "Theirs" }),
    world.ask(pauseMessages.resumeFilialRobotics, { caller, filialId, reason: "Theirs" }),
    world.ask(eventMessages.listRoboticsEvents, { caller }),
  ];
  for (const { code } of await Promise.all(asked.map(refusalOf))) expect(code).toBe("permission_denied");
});

/** The time of the task's event of that type, as consumers receive it. */
const publishedMomentOf = async (type: string, taskId: number): Promise<string | undefined> =>
  (await eventsOf(taskId)).find(({ eventType }) => eventType === type)?.createdAt;
const iso = (ms: number | null): string => new Date(ms ?? 0).toISOString();

describe("the event of a task's end", () => {
  test("cancelled or expired: its time is the stored one", async () => {
    const cancelled = await world.offer(place, fleet);
    await cancel(cancelled.taskId);
    expect(await publishedMomentOf("serving_task.cancelled", cancelled.taskId)).toBe(
      iso((await readTask(cancelled.taskId)).endedAtMs),
    );

    const expiring = await world.offer(place, fleet);
    await world.makeOverdue(expiring.taskId);
    await expect.poll(async () => (await readTask(expiring.taskId)).status).toBe("expired");
    const { endedAtMs, expiresAtMs } = await readTask(expiring.taskId);
    expect(await publishedMomentOf("serving_task.expired", expiring.taskId)).toBe(iso(endedAtMs));
    expect(endedAtMs).toBeGreaterThan(expiresAtMs);
  });
});

test("an acceptance that is decided before the deadline and written after it: gets the time of the deadline", async () => {
  const { taskId } = await world.offer(place, fleet);
  const written = await world.database.begin(async (sql) => {
    // A transaction may stall for any time between its read of the clock and its write.
    await sql`
      update serving_tasks set offered_at = offered_at - interval '1 hour', expires_at = now() - interval '1 minute'
      where task_id = ${taskId}`;
    return await setTaskStatus(sql, taskId, { status: "accepted" });
  });
  expect(written.accepted_at).toEqual(written.expires_at);
  const inTime = await world.offer(place, fleet);
  const { task } = await accept(inTime.taskId);
  expect(task.acceptedAtMs).toBeLessThan(task.expiresAtMs);
});
