/**
 * A repeated command gets the bytes of its first answer, apart from the request id of an error: one at a time, ten at once,
 * and after kill -9 of every process, nats-server and PostgreSQL included (I6 in machines/SPEC.md).
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

/** A command and its first answer. */
interface AnsweredCommand {
  readonly title: string;
  readonly client: ApiClient;
  readonly path: string;
  readonly request: Request;
  readonly answer: string;
}

let world: ChaosWorld;
const answeredCommands: AnsweredCommand[] = [];

beforeAll(async () => {
  world = await startChaosWorld(3);
});
afterAll(() => world.system.stop(), 60_000);

/** Returns status and body without the request id, which differs in each error. */
async function send({ client, path, request }: Pick<AnsweredCommand, "client" | "path" | "request">): Promise<string> {
  const { status, text } = await new RetryingClient().call(client, "POST", path, request);
  return `${status} ${text.replace(/"request_id":"[^"]*"/, '"request_id":""')}`;
}

/** Sends a new command ten times at once and then once more: all eleven answers must be equal. */
async function sendRepeatedly<T>(title: string, client: ApiClient, path: string, request: Request): Promise<T> {
  const command = { client, path, request };
  const [answer = "", ...others] = await Promise.all(Array.from({ length: AT_ONCE }, () => send(command)));
  for (const other of [...others, await send(command)]) expect(other, title).toBe(answer);
  answeredCommands.push({ title, ...command, answer });
  return JSON.parse(answer.slice(answer.indexOf(" "))) as T;
}

const key = (): string => randomBytes(12).toString("base64url");
const lines = (unit_amount: string) => ({ lines: [{ name: "Soup", quantity: 1, unit_amount }] });

async function begin({ path }: ChaosStation): Promise<{ order: Order; intent: Intent }> {
  const { cashier } = world;
  const order = await sendRepeatedly<Order>("open an order", cashier, `${path}/orders/`, {
    key: key(),
    body: lines("7.50"),
  });
  const body = { order_id: order.order_id, route: "smart_pos" };
  const intent = await sendRepeatedly<Intent>("begin a collection", cashier, `${path}/intents/`, { key: key(), body });
  return { order, intent };
}

async function report({ companion }: ChaosStation, { intent_id }: Intent): Promise<void> {
  const body = {
    intent_id,
    outcome: "reported_success",
    provider_reference: "SLIP",
    client_idempotency_key: key(),
  };
  await sendRepeatedly("report", companion, "assignment/report/", { body });
}

describe("a command repeated with the same key", () => {
  it("order, collection, report and attestation: each repetition gets the first answer", async () => {
    const [station] = world.stations as [ChaosStation];
    const { intent } = await begin(station);
    await report(station, intent);
    const path = `${station.path}/intents/${intent.intent_id}/attest/`;
    const settled = await sendRepeatedly<Intent>("attest", world.cashier, path, { key: key() });
    expect(settled).toMatchObject({ status: "succeeded", report_count: 1 });
  });

  it("a cancelled collection and a refused attestation: each repetition gets the first answer", async () => {
    const [, cancelled, changed] = world.stations as [ChaosStation, ChaosStation, ChaosStation];
    const first = await begin(cancelled);
    const cancel = `${cancelled.path}/intents/${first.intent.intent_id}/cancel/`;
    await sendRepeatedly("cancel", world.cashier, cancel, { key: key() });

    const second = await begin(changed);
    await report(changed, second.intent);
    await world.cashier.good("PUT", `orders/${second.order.order_id}/lines/`, { body: lines("8.00") });
    const attest = `${changed.path}/intents/${second.intent.intent_id}/attest/`;
    const refused = await sendRepeatedly("attest a changed order", world.cashier, attest, { key: key() });
    expect(refused).toMatchObject({ code: "order_changed", status: "processing" });
  });

  it("kill -9 and restart of every process, nats-server and PostgreSQL: ten repetitions at once get the first answer", async () => {
    const { nats, postgres, processes, bus } = world.system;
    if (postgres === undefined) throw new Error("This test must start its PostgreSQL itself.");
    const all = [nats, postgres, ...Object.values(processes)];
    await Promise.all(all.map((each) => each.kill9()));
    await Promise.all([nats.restart(), postgres.restart()]);
    await Promise.all(Object.values(processes).map((each) => each.restart()));
    await vi.waitUntil(() => bus.isUp(), { timeout: 10_000 });
    expect(answeredCommands.map(({ title }) => title)).toHaveLength(11);
    await Promise.all(
      answeredCommands.map(async (command) => {
        const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => send(command)));
        for (const answer of answers) expect(answer, command.title).toBe(command.answer);
      }),
    );
  });
});
