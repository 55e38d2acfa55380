/**
 * One key, one answer, to the byte: twice, ten times at once, and after kill -9 of every process, nats-server and
 * PostgreSQL among them (I6).
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../gateway/api/cashier/intent-json.ts";
import type { orderSchema } from "../../gateway/api/cashier/orders.ts";
import type { ApiClient, Request } from "../support/api-client.ts";
import { type ChaosStation, type ChaosWorld, startChaosWorld } from "./chaos-world.ts";
import { RetryingClient } from "./retrying-client.ts";

type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

const AT_ONCE = 10;

/** A command and the answer that it was given the first time. */
interface Told {
  readonly title: string;
  readonly client: ApiClient;
  readonly path: string;
  readonly request: Request;
  readonly answer: string;
}

let world: ChaosWorld;
const told: Told[] = [];

beforeAll(async () => {
  world = await startChaosWorld(3);
});
afterAll(() => world.system.stop(), 60_000);

/** Status and body; the id of a refused request is its own each time. */
async function ask({ client, path, request }: Pick<Told, "client" | "path" | "request">): Promise<string> {
  const { status, text } = await new RetryingClient().call(client, "POST", path, request);
  return `${status} ${text.replace(/"request_id":"[^"]*"/, '"request_id":""')}`;
}

/** Sends a command for the first time, ten times at once, and once more: all must be told the same. */
async function tell<T>(title: string, client: ApiClient, path: string, request: Request): Promise<T> {
  const command = { client, path, request };
  const [answer = "", ...others] = await Promise.all(Array.from({ length: AT_ONCE }, () => ask(command)));
  for (const other of [...others, await ask(command)]) expect(other, title).toBe(answer);
  told.push({ title, ...command, answer });
  return JSON.parse(answer.slice(answer.indexOf(" "))) as T;
}

const key = (): string => randomBytes(12).toString("base64url");
const lines = (unit_amount: string) => ({ lines: [{ name: "Soup", quantity: 1, unit_amount }] });

async function begin({ path }: ChaosStation): Promise<{ order: Order; intent: Intent }> {
  const { cashier } = world;
  const order = await tell<Order>("open an order", cashier, `${path}/orders/`, { key: key(), body: lines("7.50") });
  const body = { order_id: order.order_id, route: "smart_pos" };
  const intent = await tell<Intent>("begin a collection", cashier, `${path}/intents/`, { key: key(), body });
  return { order, intent };
}

async function report({ companion }: ChaosStation, { intent_id }: Intent): Promise<void> {
  const body = {
    intent_id,
    outcome: "reported_success",
    provider_reference: "SLIP",
    client_idempotency_key: key(),
  };
  await tell("report", companion, "assignment/report/", { body });
}

describe("the same key", () => {
  it("gets the same answer, twice and ten times at once: order, collection, report, attestation", async () => {
    const [station] = world.stations as [ChaosStation];
    const { intent } = await begin(station);
    await report(station, intent);
    const path = `${station.path}/intents/${intent.intent_id}/attest/`;
    const settled = await tell<Intent>("attest", world.cashier, path, { key: key() });
    expect(settled).toMatchObject({ status: "succeeded", report_count: 1 });
  });

  it("also of a cancelled collection, and of one whose attestation is refused", async () => {
    const [, cancelled, changed] = world.stations as [ChaosStation, ChaosStation, ChaosStation];
    const first = await begin(cancelled);
    const cancel = `${cancelled.path}/intents/${first.intent.intent_id}/cancel/`;
    await tell("cancel", world.cashier, cancel, { key: key() });

    const second = await begin(changed);
    await report(changed, second.intent);
    await world.cashier.good("PUT", `orders/${second.order.order_id}/lines/`, { body: lines("8.00") });
    const attest = `${changed.path}/intents/${second.intent.intent_id}/attest/`;
    const refused = await tell("attest a changed order", world.cashier, attest, { key: key() });
    expect(refused).toMatchObject({ code: "order_changed", status: "processing" });
  });

  it("gets it again after kill -9 and restart of every process, nats-server and PostgreSQL, also ten times at once", async () => {
    const { nats, postgres, processes, bus } = world.system;
    if (postgres === undefined) throw new Error("This needs a PostgreSQL of its own.");
    const all = [nats, postgres, ...Object.values(processes)];
    await Promise.all(all.map((each) => each.kill9()));
    await Promise.all([nats.restart(), postgres.restart()]);
    await Promise.all(Object.values(processes).map((each) => each.restart()));
    await vi.waitUntil(() => bus.isUp(), { timeout: 10_000 });
    expect(told.map(({ title }) => title)).toHaveLength(11);
    await Promise.all(
      told.map(async (command) => {
        const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => ask(command)));
        for (const answer of answers) expect(answer, command.title).toBe(command.answer);
      }),
    );
  });
});
