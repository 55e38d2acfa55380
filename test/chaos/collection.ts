/**
 * One collection as the cashier and the companion live it, through whatever happens meanwhile. Everything that was
 * acknowledged to them is kept, to be looked for afterwards.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { z } from "zod";
import type { orderSchema } from "../../gateway/contract/cashier.ts";
import type { intentSchema } from "../../gateway/contract/intent.ts";
import type { ApiClient, Request } from "../support/api-client.ts";
import type { Answer, Refused } from "../support/http.ts";
import type { ChaosStation, ChaosWorld } from "./chaos-world.ts";
import type { CollectionPlan } from "./collection-plan.ts";
import type { Patience } from "./patience.ts";

export type Order = z.infer<typeof orderSchema>;
export type Intent = z.infer<typeof intentSchema>;

/** A keyed command and the answer that it got. */
export interface Kept {
  readonly client: ApiClient;
  readonly path: string;
  readonly request: Request;
  readonly status: number;
  readonly text: string;
}

/** What the clients know of a collection when it is over. */
export interface Collection {
  readonly station: ChaosStation;
  readonly plan: CollectionPlan;
  readonly orderId: number;
  readonly intentId: number;
  /** What the order must be now, and why when it is unpaid. */
  readonly orderStatus: "paid" | "voided" | "open";
  readonly intentStatus: "succeeded" | "cancelled" | "expired";
  /** Of the transaction that the cashier was told; null when unpaid. */
  readonly sale: { readonly transactionId: number; readonly amount: string; readonly reference: string } | null;
  /** The events that the log must have for the steps that were acknowledged. */
  readonly events: readonly string[];
  readonly kept: readonly Kept[];
}

export interface CollectionDeps {
  readonly world: ChaosWorld;
  readonly patience: Patience;
  /** Called as each step begins. */
  step(): void;
}

/** How long the companion's poll may take to show a collection that exists. */
const ASSIGNED_WITHIN_MS = 30_000;
/** The companion's own pace: the throttle lets one request a second through. */
const POLL_MS = 1_100;
/** The least that the contract's deadline allows. */
const ABANDONED_SECONDS = 30;
const EXPIRED_WITHIN_MS = 90_000;

export async function collect(
  deps: CollectionDeps,
  station: ChaosStation,
  plan: CollectionPlan,
  name: string,
): Promise<Collection> {
  return await new RunningCollection(deps, station, plan, name).run();
}

class RunningCollection {
  readonly #deps: CollectionDeps;
  readonly #station: ChaosStation;
  readonly #plan: CollectionPlan;
  readonly #name: string;
  readonly #cashier: ApiClient;
  readonly #events: string[] = [];
  readonly #kept: Kept[] = [];

  constructor(deps: CollectionDeps, station: ChaosStation, plan: CollectionPlan, name: string) {
    this.#deps = deps;
    this.#station = station;
    this.#plan = plan;
    this.#name = name;
    this.#cashier = deps.world.cashier;
  }

  async run(): Promise<Collection> {
    const { ending, route } = this.#plan;
    const order = await this.#openOrder();
    const intent = await this.#create(order);
    const facts = { station: this.#station, plan: this.#plan, orderId: order.order_id, intentId: intent.intent_id };
    if (route === "smart_pos") {
      await this.#fetch(intent);
      for (const [index, outcome] of this.#plan.outcomes.entries()) await this.#report(intent, outcome, index);
    }
    const end = { ...facts, events: this.#events, kept: this.#kept };
    if (ending === "paid") {
      const sale = await this.#attest(intent);
      return { ...end, orderStatus: "paid", intentStatus: "succeeded", sale };
    }
    if (ending === "abandoned") {
      await this.#expire(intent);
      return { ...end, orderStatus: "open", intentStatus: "expired", sale: null };
    }
    if (ending === "changed") await this.#attestChanged(order, intent);
    await this.#cancel(intent);
    await this.#good(this.#cashier, "POST", `orders/${order.order_id}/void/`);
    return { ...end, orderStatus: "voided", intentStatus: "cancelled", sale: null };
  }

  async #openOrder(): Promise<Order> {
    const request = { key: `${this.#name}-order`, body: this.#lines(this.#plan.amountMinor) };
    return await this.#keyed<Order>(this.#cashier, `${this.#station.path}/orders/`, request);
  }

  #lines(amountMinor: number): object {
    return { lines: [{ name: "Soup", quantity: 1, unit_amount: (amountMinor / 100).toFixed(2) }] };
  }

  /** A companion that was not heard during an outage is offline for a moment; the cashier tries again. */
  async #create(order: Order): Promise<Intent> {
    const { route, ending } = this.#plan;
    const lifetime = ending === "abandoned" ? { lifetime_seconds: ABANDONED_SECONDS } : {};
    const request = { key: `${this.#name}-intent`, body: { order_id: order.order_id, route, ...lifetime } };
    const path = `${this.#station.path}/intents/`;
    const deadlineMs = performance.now() + ASSIGNED_WITHIN_MS;
    for (;;) {
      const answer = await this.#send<Intent & Refused>(this.#cashier, "POST", path, request);
      const isOffline = answer.status === 409 && answer.body.reason === "device_offline";
      if (!isOffline || performance.now() > deadlineMs) return this.#keep(this.#cashier, path, request, answer, 201);
      await delay(POLL_MS);
    }
  }

  async #fetch({ intent_id }: Intent): Promise<void> {
    const deadlineMs = performance.now() + ASSIGNED_WITHIN_MS;
    for (;;) {
      const { assignment } = await this.#good<{ assignment: { intent_id: number; status: string } | null }>(
        this.#station.companion,
        "GET",
        "assignment/",
      );
      if (assignment?.intent_id === intent_id) {
        expect(assignment.status, `${this.#name} was fetched`).toBe("presented");
        this.#events.push("intent_presented");
        return;
      }
      expect(performance.now(), `${this.#name} was never assigned: ${JSON.stringify(assignment)}`).toBeLessThan(
        deadlineMs,
      );
      await delay(POLL_MS);
    }
  }

  #reference(index: number): string {
    return this.#plan.outcomes[index] === "reported_declined" ? "" : `${this.#name}-slip-${index}`;
  }

  async #report({ intent_id }: Intent, outcome: string, index: number): Promise<void> {
    const body = {
      intent_id,
      outcome,
      provider_reference: this.#reference(index),
      provider_code: "00",
      client_idempotency_key: `${this.#name}-report-${index}`,
    };
    const { report } = await this.#keyed<{ report: { outcome: string } }>(
      this.#station.companion,
      "assignment/report/",
      { body },
      200,
    );
    expect(report.outcome).toBe(outcome);
    this.#events.push("outcome_reported");
  }

  async #attest({ intent_id, amount, order_id }: Intent): Promise<NonNullable<Collection["sale"]>> {
    const path = `${this.#station.path}/intents/${intent_id}/attest/`;
    const isTerminal = this.#plan.route === "attested_terminal";
    const reference = isTerminal ? `${this.#name}-terminal` : this.#reference(this.#plan.outcomes.length - 1);
    const request = { key: `${this.#name}-attest`, ...(isTerminal ? { body: { reference } } : {}) };
    const attest = () => this.#keyed<Intent>(this.#cashier, path, request, 200);
    const [settled, again] = await Promise.all(this.#plan.twice ? [attest(), attest()] : [attest()]);
    if (again !== undefined) expect(again).toEqual(settled);
    const transactionId = settled?.attestation?.transaction_id ?? 0;
    const sale = { transactionId, amount, reference: this.#plan.route === "cash" ? "" : reference };
    expect(settled).toMatchObject({ status: "succeeded", attestation: { reference: sale.reference } });
    this.#events.push("settlement_started", "intent_succeeded");
    const order = await this.#good<Order>(this.#cashier, "GET", `orders/${order_id}/`);
    expect(order).toMatchObject({ status: "paid", transaction: { transaction_id: transactionId, intent_id, amount } });
    return sale;
  }

  /** The guest was shown another amount than the order has now, so nothing may be settled. */
  async #attestChanged({ order_id }: Order, { intent_id }: Intent): Promise<void> {
    const body = this.#lines(this.#plan.amountMinor + 1);
    await this.#good(this.#cashier, "PUT", `orders/${order_id}/lines/`, { body });
    const path = `${this.#station.path}/intents/${intent_id}/attest/`;
    const request = { key: `${this.#name}-attest` };
    const answer = await this.#send<Refused>(this.#cashier, "POST", path, request);
    expect([answer.status, answer.body.code, answer.body.status], answer.text).toEqual([
      409,
      "order_changed",
      "processing",
    ]);
    this.#events.push("settlement_started", "settlement_refused");
  }

  async #cancel({ intent_id }: Intent): Promise<void> {
    const path = `${this.#station.path}/intents/${intent_id}/cancel/`;
    const request = { key: `${this.#name}-cancel` };
    const cancel = () => this.#keyed<Intent>(this.#cashier, path, request, 200);
    const [cancelled, again] = await Promise.all(this.#plan.twice ? [cancel(), cancel()] : [cancel()]);
    if (again !== undefined) expect(again).toEqual(cancelled);
    expect(cancelled?.status).toBe("cancelled");
    this.#events.push("intent_cancelled");
  }

  async #expire({ intent_id }: Intent): Promise<void> {
    const path = `${this.#station.path}/intents/${intent_id}/`;
    const deadlineMs = performance.now() + EXPIRED_WITHIN_MS;
    for (let status = ""; status !== "expired"; ) {
      expect(performance.now(), `${this.#name} still is ${status}`).toBeLessThan(deadlineMs);
      await delay(POLL_MS);
      ({ status } = await this.#good<Intent>(this.#cashier, "GET", path));
    }
    this.#events.push("intent_expired");
    // The guest did pay after all: refused, and kept.
    const body = { intent_id, outcome: "reported_success", client_idempotency_key: `${this.#name}-late` };
    const late = await this.#send<Refused>(this.#station.companion, "POST", "assignment/report/", { body });
    expect([late.status, late.body.code, late.body.status], late.text).toEqual([
      409,
      "intent_not_actionable",
      "expired",
    ]);
    this.#events.push("late_evidence_kept");
  }

  async #send<T>(client: ApiClient, method: string, path: string, request?: Request): Promise<Answer<T>> {
    this.#deps.step();
    return await this.#deps.patience.call<T>(client, method, path, request);
  }

  async #good<T>(client: ApiClient, method: string, path: string, request?: Request): Promise<T> {
    const answer = await this.#send<T>(client, method, path, request);
    expect(answer.status, `${this.#name}: ${method} ${path} answered ${answer.text}`).toBeLessThan(300);
    return answer.body;
  }

  async #keyed<T>(client: ApiClient, path: string, request: Request, status = 201): Promise<T> {
    return this.#keep(client, path, request, await this.#send<T>(client, "POST", path, request), status);
  }

  #keep<T>(client: ApiClient, path: string, request: Request, answer: Answer<T>, status: number): T {
    expect(answer.status, `${this.#name}: ${path} answered ${answer.text}`).toBe(status);
    this.#kept.push({ client, path, request, status, text: answer.text });
    if (path.endsWith("/intents/")) this.#events.push("intent_created");
    return answer.body;
  }
}
