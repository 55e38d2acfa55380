/** Commands that were sent ten times at once, each with its one answer. */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../gateway/api/cashier/intent-json.ts";
import type { orderSchema } from "../../gateway/api/cashier/orders.ts";
import type { ApiClient, Request } from "../support/api-client.ts";
import { oneLine } from "../support/people.ts";
import type { ChaosStation } from "./chaos-world.ts";
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

const key = (): string => randomBytes(12).toString("base64url");

/** Returns status and body without the request id, which differs in each error. */
async function send({ client, path, request }: Pick<AnsweredCommand, "client" | "path" | "request">): Promise<string> {
  const { status, text } = await new RetryingClient().call(client, "POST", path, request);
  return `${status} ${text.replace(/"request_id":"[^"]*"/, '"request_id":""')}`;
}

export class AnsweredCommands {
  readonly #cashier: ApiClient;
  readonly #commands: AnsweredCommand[] = [];

  constructor(cashier: ApiClient) {
    this.#cashier = cashier;
  }

  get titles(): readonly string[] {
    return this.#commands.map(({ title }) => title);
  }

  async settle(station: ChaosStation): Promise<Intent> {
    const { intent } = await this.#begin(station);
    await this.#report(station, intent);
    return await this.#decide<Intent>("attest", station, intent);
  }

  async cancel(station: ChaosStation): Promise<Intent> {
    const { intent } = await this.#begin(station);
    return await this.#decide<Intent>("cancel", station, intent);
  }

  /** Attests an intent whose order has changed. Returns the refusal. */
  async attestChangedOrder(station: ChaosStation): Promise<object> {
    const { order, intent } = await this.#begin(station);
    await this.#report(station, intent);
    await this.#cashier.good("PUT", `orders/${order.order_id}/lines/`, { body: oneLine("8.00") });
    return await this.#decide<object>("attest", station, intent);
  }

  /** Sends each command again, ten times at once, and checks that all get the first answer. */
  async repeatAll(): Promise<void> {
    await Promise.all(
      this.#commands.map(async (command) => {
        const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => send(command)));
        for (const answer of answers) expect(answer, command.title).toBe(command.answer);
      }),
    );
  }

  async #begin({ path }: ChaosStation): Promise<{ order: Order; intent: Intent }> {
    const opening = { key: key(), body: oneLine("7.50") };
    const order = await this.#sendRepeatedly<Order>("open an order", this.#cashier, `${path}/orders/`, opening);
    const creation = { key: key(), body: { order_id: order.order_id, route: "smart_pos" } };
    const title = "begin a collection";
    const intent = await this.#sendRepeatedly<Intent>(title, this.#cashier, `${path}/intents/`, creation);
    return { order, intent };
  }

  async #report({ companion }: ChaosStation, { intent_id }: Intent): Promise<void> {
    const what = { intent_id, outcome: "reported_success", provider_reference: "SLIP" };
    const body = { ...what, client_idempotency_key: key() };
    await this.#sendRepeatedly("report", companion, "assignment/report/", { body });
  }

  #decide<T>(decision: "attest" | "cancel", { path }: ChaosStation, { intent_id }: Intent): Promise<T> {
    const at = `${path}/intents/${intent_id}/${decision}/`;
    return this.#sendRepeatedly<T>(decision, this.#cashier, at, { key: key() });
  }

  /** Sends a new command ten times at once and then again. All eleven answers must be equal. */
  async #sendRepeatedly<T>(title: string, client: ApiClient, path: string, request: Request): Promise<T> {
    const command = { client, path, request };
    const [answer = "", ...others] = await Promise.all(Array.from({ length: AT_ONCE }, () => send(command)));
    for (const other of [...others, await send(command)]) expect(other, title).toBe(answer);
    this.#commands.push({ title, ...command, answer });
    return JSON.parse(answer.slice(answer.indexOf(" "))) as T;
  }
}
