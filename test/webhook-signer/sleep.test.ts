/**
 * A machine that sleeps and wakes: its monotonic clock has stopped meanwhile, and the time of day has continued. Here the
 * process of the test blocks for the time of the sleep, and `performance.now` leaves out this time.
 */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Database } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import { type Clock, startClock } from "../../services/webhook-signer/clock.ts";
import { createSender } from "../../services/webhook-signer/http/sender.ts";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { OutcomeWriter } from "../../services/webhook-signer/sending/outcome-writer.ts";
import { OwnerSender, type OwnerSenderDeps } from "../../services/webhook-signer/sending/owner-sender.ts";
import { startOwners } from "../../services/webhook-signer/sending/owners.ts";
import { Slots } from "../../services/webhook-signer/sending/slots.ts";
import { openClone } from "../support/open-clone.ts";
import { addOwner } from "./due-owner.ts";
import { parseSignature } from "./receiver.ts";
import { waitFor } from "./signer-world.ts";
import { answering, OK, type RawTarget, removeFolder, startTarget } from "./target/raw-target.ts";

const originalLimits = { ...SIGNER_LIMITS };
const awake = performance.now.bind(performance);
const log = createLog({ service: "test", level: "silent" });
const sender = createSender({});
let sleptMs = 0;
let database: Database;
beforeAll(async () => {
  const clone = await openClone({ maxConnections: 4 });
  database = clone.sql;
  performance.now = () => awake() - sleptMs;
  return clone.stop;
});
afterEach(() => Object.assign(SIGNER_LIMITS, originalLimits));
afterAll(async () => {
  performance.now = awake;
  await sender.close();
  removeFolder();
});

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  sleptMs += ms;
}

async function startOk(): Promise<RawTarget> {
  const target = await startTarget(answering(OK));
  onTestFinished(() => target.close());
  return target;
}

const depsWith = (clock: Clock) => ({
  database,
  log,
  sender,
  clock,
  allowLoopback: true,
  random: Math.random,
  isPaused: () => false,
  secretsOf: async (endpointIds: readonly number[]) => new Map(endpointIds.map((id) => [id, ["whsec_x"]])),
  onAttempt: () => undefined,
});

test("after a sleep: requests are signed with the current time", async () => {
  Object.assign(SIGNER_LIMITS, { ownerLeaseMs: 2_000, leaseMarginMs: 500 });
  const target = await startOk();
  const owners = startOwners(depsWith(await startClock(database, log)));
  onTestFinished(() => owners.stop());
  await addOwner(database, `http://127.0.0.1:${target.port}/`, { dueInMs: 4_000 });
  sleep(5_000);
  const wokeAtMs = Date.now();
  await waitFor("the request", () => target.received.join("").endsWith("{}"));
  const [, signature = ""] = /x-service-robotics-signature: (.*)\r/i.exec(target.received.join("")) ?? [];
  // A signature has whole seconds.
  const signedAtMs = parseSignature(signature).t * 1_000;
  expect(signedAtMs).toBeGreaterThan(wokeAtMs - 2_000);
  expect(signedAtMs).toBeLessThan(Date.now() + 1_000);
});

test("a sleep during a read of PostgreSQL's clock: the read is repeated", async () => {
  let isTired = false;
  // The real query, except that the machine may fall asleep between the answer and its receiver.
  const asked = async (...question: Parameters<Database>): Promise<unknown> => {
    const answer: unknown = await database(...question);
    if (isTired) sleep(3_000);
    isTired = false;
    return answer;
  };
  const clock = await startClock(asked as unknown as Database, log);
  isTired = true;
  await clock.compare();
  await clock.compareIfMoved();
  expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(1_000);
});

test("an offer that ends during a sleep: lapses and is not sent, although the owner's lease is still valid", async () => {
  const target = await startOk();
  const slots = new Slots({ count: 1, keptForPrompt: 0, keptForUntried: 0 });
  slots.take("untried");
  const deps: OwnerSenderDeps = {
    ...depsWith(await startClock(database, log)),
    slots,
    inHand: { count: 0 },
    writer: new OutcomeWriter({ database, log, signerId: randomUUID() }),
    isLeaseValid: () => true,
  };
  const organizationId = await addOwner(database, `http://127.0.0.1:${target.port}/`, { lapsesInMs: 5_000 });
  const owner = new OwnerSender(deps, organizationId);
  onTestFinished(() => owner.stop());
  await waitFor("the offer that waits for a slot", () => deps.inHand.count === 1);
  sleep(6_000);
  slots.release("untried");
  const ended = await waitFor("its end", async () => {
    const [row] = await database<{ status: string; attempts: number }[]>`
      select status, attempts from webhook_deliveries where organization_id = ${organizationId} and status <> 'pending'`;
    return row;
  });
  expect(ended).toEqual({ status: "lapsed", attempts: 0 });
  expect(target.received.join("")).toBe("");
});
