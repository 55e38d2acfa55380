/**
 * One collection by cashier and companion, during all faults. It records every acknowledged step for the final check.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { ApiClient } from "../support/api-client.ts";
import type { Refused } from "../support/http.ts";
import type { ChaosStation } from "./chaos-world.ts";
import { CollectionClient, linesOf } from "./collection-client.ts";
import type { Collection, CollectionDeps, Intent, Order } from "./collection-facts.ts";
import type { CollectionPlan } from "./collection-plan.ts";

/** The longest time until the companion's poll shows a new collection. */
const ASSIGNED_WITHIN_MS = 30_000;
/** The pause between the companion's polls. The throttle allows one request a second. */
const POLL_MS = 1_100;
/** The shortest deadline that the contract allows. */
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
  readonly #station: ChaosStation;
  readonly #plan: CollectionPlan;
  readonly #name: string;
  readonly #client: CollectionClient;
  readonly #cashier: ApiClient;

  constructor(deps: CollectionDeps, station: ChaosStation, plan: CollectionPlan, name: string) {
    this.#station = station;
    this.#plan = plan;
    this.#name = name;
    this.#client = new CollectionClient(deps, name);
    this.#cashier = deps.world.cashier;
  }

  async run(): Promise<Collection> {
    const { ending, route } = this.#plan;
    const order = await this.#client.openOrder(this.#station.path, this.#plan.amountMinor);
    const intent = await this.#create(order);
    const facts = { station: this.#station, plan: this.#plan, orderId: order.order_id, intentId: intent.intent_id };
    if (route === "smart_pos") {
      await this.#fetch(intent);
      for (const [index, outcome] of this.#plan.outcomes.entries()) await this.#report(intent, outcome, index);
    }
    const end = { ...facts, events: this.#client.events, kept: this.#client.kept };
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
    await this.#client.good(this.#cashier, "POST", `orders/${order.order_id}/void/`);
    return { ...end, orderStatus: "voided", intentStatus: "cancelled", sale: null };
  }

  /** Creates the collection. During an outage, the companion may be offline for a moment. Then the cashier tries again. */
  async #create(order: Order): Promise<Intent> {
    const { route, ending } = this.#plan;
    const lifetime = ending === "abandoned" ? { lifetime_seconds: ABANDONED_SECONDS } : {};
    const request = { key: `${this.#name}-intent`, body: { order_id: order.order_id, route, ...lifetime } };
    const path = `${this.#station.path}/intents/`;
    const deadlineMs = performance.now() + ASSIGNED_WITHIN_MS;
    for (;;) {
      const answer = await this.#client.send<Intent & Refused>(this.#cashier, "POST", path, request);
      const isOffline = answer.status === 409 && answer.body.reason === "device_offline";
      if (!isOffline || performance.now() > deadlineMs)
        return this.#client.keep(this.#cashier, path, request, answer, 201);
      await delay(POLL_MS);
    }
  }

  async #fetch({ intent_id }: Intent): Promise<void> {
    const deadlineMs = performance.now() + ASSIGNED_WITHIN_MS;
    for (;;) {
      const { assignment } = await this.#client.good<{ assignment: { intent_id: number; status: string } | null }>(
        this.#station.companion,
        "GET",
        "assignment/",
      );
      if (assignment?.intent_id === intent_id) {
        expect(assignment.status, `${this.#name} was fetched`).toBe("presented");
        this.#client.events.push("intent_presented");
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
    const { report } = await this.#client.keyed<{ report: { outcome: string } }>(
      this.#station.companion,
      "assignment/report/",
      { body },
      200,
    );
    expect(report.outcome).toBe(outcome);
    this.#client.events.push("outcome_reported");
  }

  async #attest({ intent_id, amount, order_id }: Intent): Promise<NonNullable<Collection["sale"]>> {
    const path = `${this.#station.path}/intents/${intent_id}/attest/`;
    const isTerminal = this.#plan.route === "attested_terminal";
    const reference = isTerminal ? `${this.#name}-terminal` : this.#reference(this.#plan.outcomes.length - 1);
    const request = { key: `${this.#name}-attest`, ...(isTerminal ? { body: { reference } } : {}) };
    const attest = () => this.#client.keyed<Intent>(this.#cashier, path, request, 200);
    const [settled, again] = await Promise.all(this.#plan.twice ? [attest(), attest()] : [attest()]);
    if (again !== undefined) expect(again).toEqual(settled);
    const transactionId = settled?.attestation?.transaction_id ?? 0;
    const sale = { transactionId, amount, reference: this.#plan.route === "cash" ? "" : reference };
    expect(settled).toMatchObject({ status: "succeeded", attestation: { reference: sale.reference } });
    this.#client.events.push("settlement_started", "intent_succeeded");
    const order = await this.#client.good<Order>(this.#cashier, "GET", `orders/${order_id}/`);
    expect(order).toMatchObject({ status: "paid", transaction: { transaction_id: transactionId, intent_id, amount } });
    return sale;
  }

  /** Attests after a change of the order: the guest has paid another amount, so nothing may be settled. */
  async #attestChanged({ order_id }: Order, { intent_id }: Intent): Promise<void> {
    const body = linesOf(this.#plan.amountMinor + 1);
    await this.#client.good(this.#cashier, "PUT", `orders/${order_id}/lines/`, { body });
    const path = `${this.#station.path}/intents/${intent_id}/attest/`;
    const request = { key: `${this.#name}-attest` };
    const answer = await this.#client.send<Refused>(this.#cashier, "POST", path, request);
    expect([answer.status, answer.body.code, answer.body.status], answer.text).toEqual([
      409,
      "order_changed",
      "processing",
    ]);
    this.#client.events.push("settlement_started", "settlement_refused");
  }

  async #cancel({ intent_id }: Intent): Promise<void> {
    const path = `${this.#station.path}/intents/${intent_id}/cancel/`;
    const request = { key: `${this.#name}-cancel` };
    const cancel = () => this.#client.keyed<Intent>(this.#cashier, path, request, 200);
    const [cancelled, again] = await Promise.all(this.#plan.twice ? [cancel(), cancel()] : [cancel()]);
    if (again !== undefined) expect(again).toEqual(cancelled);
    expect(cancelled?.status).toBe("cancelled");
    this.#client.events.push("intent_cancelled");
  }

  async #expire({ intent_id }: Intent): Promise<void> {
    const path = `${this.#station.path}/intents/${intent_id}/`;
    const deadlineMs = performance.now() + EXPIRED_WITHIN_MS;
    for (let status = ""; status !== "expired"; ) {
      expect(performance.now(), `${this.#name} still is ${status}`).toBeLessThan(deadlineMs);
      await delay(POLL_MS);
      ({ status } = await this.#client.good<Intent>(this.#cashier, "GET", path));
    }
    this.#client.events.push("intent_expired");
    // The guest has paid, so the station refuses the report and keeps it as evidence.
    const body = { intent_id, outcome: "reported_success", client_idempotency_key: `${this.#name}-late` };
    const late = await this.#client.send<Refused>(this.#station.companion, "POST", "assignment/report/", { body });
    expect([late.status, late.body.code, late.body.status], late.text).toEqual([
      409,
      "intent_not_actionable",
      "expired",
    ]);
    this.#client.events.push("late_evidence_kept");
  }
}
