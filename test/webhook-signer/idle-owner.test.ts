/** Which owner a full process may release: one without requests in progress or waiting deliveries. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Database } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import { startClock } from "../../services/webhook-signer/clock.ts";
import { createSender } from "../../services/webhook-signer/http/sender.ts";
import { OutcomeWriter } from "../../services/webhook-signer/sending/outcome-writer.ts";
import { OwnerSender } from "../../services/webhook-signer/sending/owner-sender.ts";
import { Slots } from "../../services/webhook-signer/sending/slots.ts";
import { openClone } from "../support/open-clone.ts";
import { addOwner } from "./due-owner.ts";
import { waitFor } from "./signer-world.ts";
import { answering, OK, removeFolder, startTarget } from "./target/raw-target.ts";

let database: Database;
beforeAll(async () => {
  const clone = await openClone({ maxConnections: 4 });
  database = clone.sql;
  return clone.stop;
});
afterAll(removeFolder);

test("an owner is idle after a poll when none of its deliveries is in progress or waits for a slot", async () => {
  let answer = (): void => undefined;
  const target = await startTarget((socket, soFar) => {
    answer = () => answering(OK)(socket, soFar);
  });
  onTestFinished(() => target.close());
  const log = createLog({ service: "test", level: "silent" });
  const sender = createSender({});
  const slots = new Slots({ count: 1, keptForPrompt: 0, keptForUntried: 0 });
  const inHand = { count: 0 };
  let attempts = 0;
  slots.take("untried");
  const owner = new OwnerSender(
    {
      database,
      log,
      sender,
      slots,
      inHand,
      clock: await startClock(database, log),
      allowLoopback: true,
      random: Math.random,
      isPaused: () => false,
      writer: new OutcomeWriter({ database, log, signerId: randomUUID() }),
      isLeaseValid: () => true,
      secretsOf: async (endpointIds) => new Map(endpointIds.map((id) => [id, ["whsec_x"]])),
      onAttempt: () => {
        attempts += 1;
      },
    },
    await addOwner(database, `http://127.0.0.1:${target.port}/`),
  );
  expect(owner.idleSinceMs).toBeUndefined();
  await waitFor("the delivery that waits for a slot", () => inHand.count === 1);
  expect(owner.idleSinceMs).toBeUndefined();
  slots.release("untried");
  await waitFor("the request", () => target.received.join("").endsWith("{}"));
  expect(owner.idleSinceMs).toBeUndefined();
  answer();
  await waitFor("its outcome", () => attempts === 1 && inHand.count === 0);
  expect(owner.idleSinceMs).toBeLessThanOrEqual(Date.now());
  await owner.stop();
  await sender.close();
});
