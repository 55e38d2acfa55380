/** A log line about one event or delivery has the id of the request that caused it, across outbox, bus and table. */
import { randomUUID } from "node:crypto";
import { pino } from "pino";
import type { JSONValue } from "postgres";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { requestHeaders } from "../../services/bus/deadline.ts";
import { redeliverWebhook } from "../../services/bus/messages/webhook-deliveries.ts";
import { testWebhookEndpoint } from "../../services/bus/messages/webhook-endpoints.ts";
import { roboticsEventSubject } from "../../services/bus/subjects.ts";
import { filialKey } from "../../services/db/outbox.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { currentRequestId, forRequest } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import type { SignerDeps } from "../../services/webhook-signer/deps.ts";
import { createSweep } from "../../services/webhook-signer/intake.ts";
import { sendOnce } from "../../services/webhook-signer/sending/attempt.ts";
import { OutcomeWriter } from "../../services/webhook-signer/sending/outcome-writer.ts";
import { OwnerSender } from "../../services/webhook-signer/sending/owner-sender.ts";
import { Slots } from "../../services/webhook-signer/sending/slots.ts";
import { startWebhookSignerService } from "../../services/webhook-signer/service.ts";
import { cloneDatabase } from "../support/servers.ts";
import { addOwner } from "./due-owner.ts";
import { type Fleet, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

interface Line {
  readonly msg: string;
  readonly deliveryId?: number;
  readonly eventId?: number;
  readonly sequence?: number;
  readonly requestId?: string;
}

const FAULT = "a delivery could not be sent because of a fault in this service";
const UNREADABLE = "an event of robotics does not match its schema and is left out";

let world: SignerWorld;
let signer: Service;
const lines: Line[] = [];
const mixin = (): object => ({ requestId: currentRequestId() });
const log = pino({ mixin }, { write: (line: string) => void lines.push(JSON.parse(line) as Line) });

/** A sender with a fault. */
const FAULTY = {
  log,
  sender: { send: () => Promise.reject(new Error("a fault")) },
  clock: { nowMs: Date.now },
  allowLoopback: false,
};

beforeAll(async () => {
  world = await startSignerWorld({ signers: 0 });
  signer = await startWebhookSignerService({ ...world.serviceDeps, environment: world.environment, log });
  await world.addRelay();
});
afterAll(async () => {
  await signer.stop();
  await world.stop();
});

const lineOf = (isIt: (line: Line) => boolean): Promise<Line> => waitFor("the line", () => lines.find(isIt));

async function requestIdsOf({ consumerId }: Fleet): Promise<readonly (string | null)[]> {
  const rows = await world.database<{ request_id: string | null }[]>`
    select request_id from webhook_deliveries where consumer_id = ${consumerId} order by delivery_id`;
  return rows.map((row) => row.request_id);
}

test("an outcome that cannot be stored: the log line has the id of the request that wrote the event", async () => {
  const [caused, uncaused] = [await world.openFleet(), await world.openFleet()];
  for (const [fleet, path] of [[caused, "/caused"] as const, [uncaused, "/uncaused"] as const]) {
    await world.addEndpoint(fleet, path);
    world.receiver.behave(path, () => ({ status: 200, body: "poison" }));
  }
  await world.database`alter table webhook_attempts add constraint probe check (response_body <> 'poison')`;
  await forRequest("the task", () => world.emit(caused));
  await world.emit(uncaused);
  const idsOfLines = await Promise.all(
    [caused, uncaused].map(async (fleet) => {
      const [one] = await world.untilStatus(fleet, "pending");
      return (await lineOf(({ deliveryId }) => deliveryId === one?.deliveryId)).requestId;
    }),
  );
  await world.database`alter table webhook_attempts drop constraint probe`;
  await world.pauseEndpoints([caused, uncaused]);
  expect(idsOfLines).toEqual(["the task", undefined]);
});

test("a delivery that a fault stops: the log line has the id of the delivery's request", async () => {
  // A separate database, so that the world's signer does not send the delivery.
  const server = await cloneDatabase();
  onTestFinished(() => server.drop());
  const database = openDatabase({ url: server.url, maxConnections: 4 });
  onTestFinished(() => closeDatabase(database));
  const organizationId = await addOwner(database, "https://example.com/");
  await database`update webhook_deliveries set request_id = 'the event'`;
  const { promise: attempted, resolve: onAttempt } = Promise.withResolvers<unknown>();
  const deps = {
    ...FAULTY,
    database,
    slots: new Slots({ count: 1, keptForPrompt: 0, keptForUntried: 0 }),
    inHand: { count: 0 },
    random: Math.random,
    isPaused: () => false,
    writer: new OutcomeWriter({ database, log, signerId: randomUUID() }),
    isLeaseValid: () => true,
    secretsOf: async (endpointIds: readonly number[]) => new Map(endpointIds.map((id) => [id, ["secret"]])),
    onAttempt,
  };
  const owner = new OwnerSender(deps, organizationId);
  await attempted;
  await owner.stop();
  expect(lines.filter(({ msg }) => msg === FAULT)).toMatchObject([{ requestId: "the event" }]);
});

test("a test that a fault stops: the log line has the id of the current request", async () => {
  const target = { url: "https://example.com/", mode: "test", secrets: ["secret"] } as const;
  const message = { body: "{}", signal: new AbortController().signal };
  await forRequest("the test", () => sendOnce(FAULTY, target, message));
  expect(lines.at(-1)).toMatchObject({ requestId: "the test" });
});

test("an unreadable event from the bus: the log line has the id that the event carries", async () => {
  const headers = forRequest("an unreadable event", requestHeaders);
  const { seq } = await world.bus.js.publish(roboticsEventSubject(1), "no json", { headers });
  const line = await lineOf(({ msg, sequence }) => msg === UNREADABLE && sequence === seq);
  expect(line).toMatchObject({ requestId: "an unreadable event" });
});

test("events that the bus has lost: the delivery, or the log line about an unreadable one, has the outbox row's id", async () => {
  const fleet = await world.openFleet();
  const eventId = await addLost(fleet, {}, "an unreadable row");
  await addLost(fleet, eventOf(fleet), "a lost row");
  const metrics = { events: { add: () => undefined }, deliveries: { add: () => undefined } };
  const deps = { database: world.database, log, metrics, wake: () => undefined } as unknown as SignerDeps;
  await createSweep(deps)();
  const line = lines.find((one) => one.msg === UNREADABLE && one.eventId === eventId);
  expect(line).toMatchObject({ requestId: "an unreadable row" });
  expect(await requestIdsOf(fleet)).toEqual(["a lost row"]);
});

test("one more attempt, and an owner's test: the delivery has the id of the request that asked for it", async () => {
  const fleet = await world.openFleet();
  const { endpointId } = await world.addEndpoint(fleet, "/again");
  await forRequest("the event", () => world.emit(fleet));
  const [one] = await world.untilStatus(fleet, "delivered");
  expect(await requestIdsOf(fleet)).toEqual(["the event"]);
  const again = { consumer: fleet.consumer, deliveryId: one?.deliveryId ?? 0 };
  await forRequest("the redelivery", () => world.ask(redeliverWebhook, again));
  const tested = { caller: fleet.owner, endpointId };
  await forRequest("the test", () => world.ask(testWebhookEndpoint, tested));
  expect(await requestIdsOf(fleet)).toEqual(["the redelivery", "the test"]);
});

/** Stores an event that the relay has delivered long ago and that never came from the bus. Returns its id. */
async function addLost({ filialId }: Fleet, event: object, requestId: string): Promise<number> {
  const [row] = await world.database<[{ outbox_id: number }]>`
    insert into outbox (key, kind, payload, delivered_at, request_id)
    values (${filialKey(filialId)}, 'robotics_event', ${world.database.json({ event } as JSONValue)},
      now() - interval '1 day', ${requestId})
    returning outbox_id`;
  return row.outbox_id;
}

function eventOf({ organizationId, filialId, consumerId }: Fleet): object {
  const payload = { task_id: 1, display_number: 1, leg: "kitchen_to_table", status: "cancelled" };
  const createdAt = new Date().toISOString();
  return { organizationId, filialId, consumerId, createdAt, eventType: "serving_task.cancelled", payload };
}
