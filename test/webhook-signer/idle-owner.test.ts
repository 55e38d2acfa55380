/** Which owner a full process may give back: one of which nothing is under way and nothing waits. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import { startClock } from "../../services/webhook-signer/clock.ts";
import { createSender } from "../../services/webhook-signer/http/sender.ts";
import { OutcomeWriter } from "../../services/webhook-signer/sending/outcome-writer.ts";
import { OwnerSender } from "../../services/webhook-signer/sending/owner-sender.ts";
import { Slots } from "../../services/webhook-signer/sending/slots.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";
import { waitFor } from "./signer-world.ts";
import { answering, OK, removeFolder, startTarget } from "./target/raw-target.ts";

let server: TestDatabase;
let database: Database;
beforeAll(async () => {
  server = await cloneDatabase();
  database = openDatabase({ url: server.url, maxConnections: 4 });
});
afterAll(async () => {
  await closeDatabase(database);
  await server.drop();
  removeFolder();
});

/** An owner with one delivery that is due. */
async function addOwner(url: string): Promise<number> {
  const [row] = await database<[{ organization_id: number }]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o
      returning organization_id, filial_id),
    c as (insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
      select organization_id, filial_id, 'Fleet', 'test', ${randomBytes(32)} from f
      returning organization_id, filial_id, consumer_id),
    e as (insert into webhook_endpoints (organization_id, consumer_id, filial_id, url)
      select organization_id, consumer_id, filial_id, ${url} from c
      returning organization_id, consumer_id, endpoint_id)
    insert into webhook_deliveries (organization_id, consumer_id, endpoint_id, event_type, body, status, due_at)
    select organization_id, consumer_id, endpoint_id, 'robotics.paused', '{}', 'pending', now() from e
    returning organization_id`;
  return row.organization_id;
}

test("it is idle when it has looked and nothing of it is under way, nor waits for a place", async () => {
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
      writer: new OutcomeWriter({ database, log }),
      isLeaseValid: () => true,
      secretsOf: async (endpointIds) => new Map(endpointIds.map((id) => [id, ["whsec_x"]])),
      onAttempt: () => {
        attempts += 1;
      },
    },
    await addOwner(`http://127.0.0.1:${target.port}/`),
  );
  expect(owner.idleSinceMs).toBeUndefined();
  await waitFor("the delivery that waits for a place", () => inHand.count === 1);
  expect(owner.idleSinceMs).toBeUndefined();
  slots.give("untried");
  await waitFor("the request", () => target.received.join("").endsWith("{}"));
  expect(owner.idleSinceMs).toBeUndefined();
  answer();
  await waitFor("its outcome", () => attempts === 1 && inHand.count === 0);
  expect(owner.idleSinceMs).toBeLessThanOrEqual(Date.now());
  await owner.stop();
  await sender.close();
}, 20_000);
