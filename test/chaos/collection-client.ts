/** The common part of all clients of collections: requests with retries, keyed commands with stored answers, and an order. */
import { expect } from "vitest";
import type { ApiClient, Request } from "../support/api-client.ts";
import type { Answer } from "../support/http.ts";
import type { CollectionDeps, Kept, Order } from "./collection-facts.ts";

export class CollectionClient {
  /** The events that the log must have for the steps that were acknowledged. */
  readonly events: string[] = [];
  readonly kept: Kept[] = [];
  readonly #deps: CollectionDeps;
  readonly #name: string;

  constructor(deps: CollectionDeps, name: string) {
    this.#deps = deps;
    this.#name = name;
  }

  get cashier(): ApiClient {
    return this.#deps.world.cashier;
  }

  async send<T>(client: ApiClient, method: string, path: string, request?: Request): Promise<Answer<T>> {
    this.#deps.step();
    return await this.#deps.retrying.call<T>(client, method, path, request);
  }

  async good<T>(client: ApiClient, method: string, path: string, request?: Request): Promise<T> {
    const answer = await this.send<T>(client, method, path, request);
    expect(answer.status, `${this.#name}: ${method} ${path} answered ${answer.text}`).toBeLessThan(300);
    return answer.body;
  }

  async keyed<T>(client: ApiClient, path: string, request: Request, status = 201): Promise<T> {
    return this.keep(client, path, request, await this.send<T>(client, "POST", path, request), status);
  }

  keep<T>(client: ApiClient, path: string, request: Request, answer: Answer<T>, status: number): T {
    expect(answer.status, `${this.#name}: ${path} answered ${answer.text}`).toBe(status);
    this.kept.push({ client, path, request, status, text: answer.text });
    if (path.endsWith("/intents/")) this.events.push("intent_created");
    return answer.body;
  }

  async openOrder(stationPath: string, amountMinor: number): Promise<Order> {
    const request = { key: `${this.#name}-order`, body: linesOf(amountMinor) };
    return await this.keyed<Order>(this.cashier, `${stationPath}/orders/`, request);
  }
}

/** The body of an order of one line. */
export function linesOf(amountMinor: number): object {
  return { lines: [{ name: "Soup", quantity: 1, unit_amount: (amountMinor / 100).toFixed(2) }] };
}
