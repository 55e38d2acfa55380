/** Which credentials the service accepts, and what happens to the open tasks of a consumer. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as consumerMessages from "../../services/bus/messages/consumers.ts";
import * as eventMessages from "../../services/bus/messages/events.ts";
import * as pauseMessages from "../../services/bus/messages/filial-robotics.ts";
import * as taskMessages from "../../services/bus/messages/serving-tasks.ts";
import { type Fleet, type Place, type RoboticsWorld, refusalOf, startRoboticsWorld } from "./robotics-world.ts";

let world: RoboticsWorld;
let place: Place;
beforeAll(async () => {
  world = await startRoboticsWorld();
  place = await world.openPlace();
});
afterAll(() => world.stop());

const sha256 = (credential: string): string => createHash("sha256").update(credential).digest("hex");
const asWhom = (credential: string) =>
  world.ask(consumerMessages.authenticateConsumer, { credentialHash: sha256(credential) });
const who = async (credential: string) => (await asWhom(credential)).consumer;
const set = (fleet: Fleet, status: "active" | "suspended") =>
  world.ask(consumerMessages.changeRoboticsConsumer, { caller: place.owner, consumerId: fleet.consumerId, status });

describe("the credential of a consumer", () => {
  test("finds its consumer, and is stored only as its SHA-256 (I9)", async () => {
    const fleet = await world.addFleet(place);
    expect(fleet.credential).toMatch(/^rc_[\w-]{43}$/);
    expect(await who(fleet.credential)).toEqual(fleet.caller);
    expect(await who(`${fleet.credential.slice(0, -1)}~`)).toBeNull();
    const [row] = await world.database<[{ whole: string; hash: string }]>`
      select c::text as whole, encode(credential_hash, 'hex') as hash from robotics_consumers c
      where consumer_id = ${fleet.consumerId}`;
    expect(row.hash).toBe(sha256(fleet.credential));
    expect(row.whole).not.toContain(fleet.credential.slice(3));
    const [auditLog] = await world.database<
      [{ text: string }]
    >`select string_agg(t::text, '') as text from robotics_trail t`;
    expect(auditLog.text).not.toContain(fleet.credential.slice(3));
  });

  test("a reset: the old credential ends, and the new one is valid", async () => {
    const fleet = await world.addFleet(place);
    const { owner: caller } = place;
    const reset = await world.ask(consumerMessages.resetRoboticsCredential, { caller, consumerId: fleet.consumerId });
    expect(await who(fleet.credential)).toBeNull();
    expect(await who(reset.credential)).toEqual(fleet.caller);
  });
});

describe("a suspended consumer", () => {
  test("its credential is refused and it gets no offers, until it is active again", async () => {
    const fleet = await world.addFleet(place);
    await set(fleet, "suspended");
    expect(await asWhom(fleet.credential)).toEqual({ consumer: null, suspended: true });
    expect(await asWhom(`${fleet.credential}x`)).toEqual({ consumer: null, suspended: false });
    expect(await refusalOf(world.offer(place, fleet))).toMatchObject({ code: "conflict" });
    await set(fleet, "active");
    expect(await who(fleet.credential)).toEqual(fleet.caller);
  });

  test("its open tasks: cannot be accepted or completed; the owner can cancel them", async () => {
    const fleet = await world.addFleet(place);
    const { caller: consumer } = fleet;
    const { taskId } = await world.offer(place, fleet);
    const { taskId: acceptedId } = await world.offer(place, fleet);
    await world.ask(taskMessages.acceptServingTask, { consumer, taskId: acceptedId });
    await set(fleet, "suspended");
    // This is like a request whose credential was checked just before the suspension.
    const accepting = world.ask(taskMessages.acceptServingTask, { consumer, taskId });
    expect(await refusalOf(accepting)).toMatchObject({ code: "permission_denied" });
    const completing = world.ask(taskMessages.completeServingTask, { consumer, taskId: acceptedId });
    expect(await refusalOf(completing)).toMatchObject({ code: "permission_denied" });
    for (const [id, status] of [
      [taskId, "offered"],
      [acceptedId, "accepted"],
    ] as const) {
      const { owner: caller } = place;
      expect((await world.ask(taskMessages.getServingTask, { caller, taskId: id })).task.status).toBe(status);
      const { task } = await world.ask(taskMessages.cancelServingTask, { caller, taskId: id, reason: "Suspended." });
      expect(task.status).toBe("cancelled");
    }
  });

  test("after the answer to its suspension: no acceptance takes effect, whatever was in progress", async () => {
    for (let round = 0; round < 10; round += 1) {
      const own = await world.openPlace();
      const { organizationId, owner } = own;
      const fleet = await world.addFleet(own);
      const tasks = await Promise.all(Array.from({ length: 6 }, () => world.offer(own, fleet)));
      const accepting = tasks.map(({ taskId }) =>
        world.ask(taskMessages.acceptServingTask, { consumer: fleet.caller, taskId }),
      );
      const suspension = { caller: owner, consumerId: fleet.consumerId, status: "suspended" } as const;
      const [, ...results] = await Promise.allSettled([
        world.ask(consumerMessages.changeRoboticsConsumer, suspension),
        ...accepting,
      ]);
      const accepted = results.filter(({ status }) => status === "fulfilled").length;
      const entries = await world.database<{ action: string }[]>`
        select action from robotics_trail where organization_id = ${organizationId} order by event_id`;
      const actions = entries.map(({ action }) => action);
      expect(actions.filter((action) => action === "serving_task_accepted")).toHaveLength(accepted);
      expect(actions.slice(actions.indexOf("robotics_consumer_changed") + 1)).toEqual([]);
    }
  });
});

describe("the change of a consumer", () => {
  test("a new name: in the audit log; the same name again: not", async () => {
    const fleet = await world.addFleet(place);
    const change = { caller: place.owner, consumerId: fleet.consumerId, name: "Upstairs" };
    const { consumer } = await world.ask(consumerMessages.changeRoboticsConsumer, change);
    expect(consumer).toMatchObject({ name: "Upstairs", status: "active" });
    await world.ask(consumerMessages.changeRoboticsConsumer, change);
    const { events: entries } = await world.ask(eventMessages.listRoboticsEvents, { caller: place.owner, limit: 2 });
    expect(entries.map(({ action, data }) => [action, data])).toEqual([
      ["robotics_consumer_changed", { name: "Upstairs" }],
      ["robotics_consumer_created", { filial_id: place.filialId, name: "Fleet", mode: "test" }],
    ]);
  });

  test("by the owner of another organization: refused", async () => {
    const fleet = await world.addFleet(place);
    const { owner: caller, filialId } = await world.openPlace();
    const { consumerId } = fleet;
    const asked = [
      world.ask(consumerMessages.changeRoboticsConsumer, { caller, consumerId, status: "suspended" }),
      world.ask(consumerMessages.resetRoboticsCredential, { caller, consumerId }),
      world.ask(consumerMessages.createRoboticsConsumer, {
        caller,
        filialId: place.filialId,
        name: "Theirs",
        mode: "live",
      }),
      world.ask(pauseMessages.pauseFilialRobotics, { caller, filialId: place.filialId, reason: "Theirs." }),
      world.ask(pauseMessages.getFilialRobotics, { caller, filialId: place.filialId }),
    ];
    for (const { code } of await Promise.all(asked.map(refusalOf))) expect(code).toBe("not_found");
    expect(await who(fleet.credential)).toEqual(fleet.caller);
    expect((await world.ask(consumerMessages.listRoboticsConsumers, { caller, filialId })).consumers).toEqual([]);
    expect(
      (await world.ask(consumerMessages.listRoboticsConsumers, { caller, filialId: place.filialId })).consumers,
    ).toEqual([]);
  });
});

test("the sandbox's consumer: created once, always with the newest credential", async () => {
  const { organizationId, filialId } = await world.openPlace();
  const seed = (credential: string) =>
    world.ask(consumerMessages.seedSandboxConsumer, { organizationId, filialId, credentialHash: sha256(credential) });
  const { consumerId } = await seed("rc_first");
  expect(await seed("rc_first")).toEqual({ consumerId });
  expect(await seed("rc_second")).toEqual({ consumerId });
  expect(await who("rc_first")).toBeNull();
  expect(await who("rc_second")).toMatchObject({ consumerId, organizationId, filialId, mode: "test" });
  const entries = await world.database<{ action: string }[]>`
    select action from robotics_trail where organization_id = ${organizationId} order by event_id`;
  expect(entries.map(({ action }) => action)).toEqual(["robotics_consumer_created", "robotics_credential_reset"]);
});
