/** The answer to a lease is lost: PostgreSQL names the process as the holder, but another process has held the owner before. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Database } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import { startClock } from "../../services/webhook-signer/clock.ts";
import { createSender } from "../../services/webhook-signer/http/sender.ts";
import { startOwners } from "../../services/webhook-signer/sending/owners.ts";
import { openClone } from "../support/open-clone.ts";
import { addOwner } from "./due-owner.ts";
import { waitFor } from "./signer-world.ts";
import { OK, removeFolder, startTarget } from "./target/raw-target.ts";

let database: Database;
beforeAll(async () => {
  const clone = await openClone({ maxConnections: 4 });
  database = clone.sql;
  return clone.stop;
});
afterAll(removeFolder);

test("a lost answer to the lease: the process sends none of the deliveries that another process has sent meanwhile", async () => {
  const waiting: (() => void)[] = [];
  const target = await startTarget((socket, soFar) => {
    if (soFar.endsWith("}")) waiting.push(() => socket.write(OK));
  });
  onTestFinished(() => target.close());
  const bodies = (): readonly string[] => [...target.received.join("").matchAll(/\{.*\}/g)].map(([body]) => body);
  const organizationId = await addOwner(database, `http://127.0.0.1:${target.port}/`);
  await database`
    insert into webhook_deliveries (organization_id, consumer_id, endpoint_id, event_type, body, status, due_at)
    select organization_id, consumer_id, endpoint_id, event_type, '{"n":' || n || '}', 'pending', now()
    from webhook_deliveries, generate_series(2, 3) n`;
  let step: "holds it" | "has been stopped" | "gets no answer" | "goes on" = "holds it";
  const meanwhile = async (answer: unknown): Promise<unknown> => {
    const rows = await answer;
    // The process believes that it holds the owner. Its lease has lapsed, and another one has sent a delivery and released it.
    await database`update webhook_deliveries set status = 'delivered', due_at = null where body = '{"n":2}'`;
    await database`update webhook_owners set leased_by = null, leased_until = '-infinity'`;
    step = "gets no answer";
    return rows;
  };
  const lost = async (answer: unknown): Promise<never> => {
    await answer;
    step = "goes on";
    throw new Error("The connection was lost.");
  };
  const asked = (...question: Parameters<Database>): unknown => {
    const text = String(question[0]);
    const answer: unknown = database(...question);
    if (step === "has been stopped" && text.includes("insert into webhook_signers")) return meanwhile(answer);
    if (step === "gets no answer" && text.includes("insert into webhook_owners")) return lost(answer);
    return answer;
  };
  const log = createLog({ service: "test", level: "silent" });
  const sender = createSender({});
  const owners = startOwners({
    database: Object.assign(asked, {
      begin: (work: Parameters<Database["begin"]>[1]) => database.begin(work),
    }) as unknown as Database,
    log,
    sender,
    clock: await startClock(database, log),
    allowLoopback: true,
    random: Math.random,
    isPaused: () => false,
    secretsOf: async (endpointIds) => new Map(endpointIds.map((id) => [id, ["whsec_x"]])),
    onAttempt: () => undefined,
  });
  onTestFinished(async () => {
    await owners.stop();
    await sender.close();
  });
  // The other deliveries wait for this one.
  await waitFor("the first request", () => waiting.length === 1);
  step = "has been stopped";
  await waitFor("the answer that it does not get", () => step === "goes on");
  const renewals = async (): Promise<Date | undefined> => {
    const [row] = await database<{ seen_at: Date }[]>`select seen_at from webhook_signers`;
    return row?.seen_at;
  };
  const before = await renewals();
  await waitFor("its next renewal", async () => (await renewals())?.getTime() !== before?.getTime());
  const answerAll = setInterval(() => waiting.splice(0).forEach((answer) => answer()), 20);
  onTestFinished(() => clearInterval(answerAll));
  await waitFor("all of them", async () => {
    const rows = await database`
      select from webhook_deliveries where organization_id = ${organizationId} and status = 'pending'`;
    return rows.length === 0;
  });
  expect(bodies()).toEqual(["{}", '{"n":3}']);
});
