/**
 * One QR collection by cashier and guest. The provider's reports arrive without a command, so the clients wait for the end. A
 * collection may also end because the provider does not answer for too long.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { Refused } from "../support/http.ts";
import type { ChaosStation } from "./chaos-world.ts";
import { CollectionClient } from "./collection-client.ts";
import type { Collection, CollectionDeps, Intent, Order } from "./collection-facts.ts";
import type { QrPlan } from "./qr-plan.ts";

/** The pause between the cashier's polls. */
const POLL_MS = 400;
/** The slowest end: a lost callback, whose payment is found by a poll after several outages. */
const ENDED_WITHIN_MS = 75_000;
/** The shortest deadline that the contract allows. */
const ABANDONED_SECONDS = 30;
/** Ends that an outage can cause in any plan. */
export const OUTAGE_REASONS: readonly string[] = ["provider_unavailable", "provider_timed_out"];
const DECLINE_REASONS: Readonly<Record<string, string>> = {
  decline: "payment_declined",
  buyer_cancel: "buyer_cancelled",
  out_of_order: "payment_declined",
};
const STATUSES_OF_ENDING: Readonly<Record<QrPlan["ending"], readonly Intent["status"][]>> = {
  qr_paid: ["succeeded"],
  qr_declined: ["cancelled"],
  // A kill may delay the report of the payment until the older decline is processed. Then the payment is an issue.
  qr_overtaken: ["cancelled", "succeeded"],
  qr_cancelled: ["cancelled"],
  qr_raced: ["cancelled", "succeeded"],
  qr_abandoned: ["expired"],
};

export async function collectByQr(
  deps: CollectionDeps,
  station: ChaosStation,
  plan: QrPlan,
  name: string,
): Promise<Collection> {
  return await new QrCollection(deps, station, plan, name).run();
}

class QrCollection {
  readonly #client: CollectionClient;
  readonly #station: ChaosStation;
  readonly #plan: QrPlan;
  readonly #name: string;

  constructor(deps: CollectionDeps, station: ChaosStation, plan: QrPlan, name: string) {
    this.#client = new CollectionClient(deps, name);
    this.#station = station;
    this.#plan = plan;
    this.#name = name;
  }

  async run(): Promise<Collection> {
    const { ending, amountMinor } = this.#plan;
    const { cashier, events, kept } = this.#client;
    const order = await this.#client.openOrder(this.#station.path, amountMinor);
    const lifetime = ending === "qr_abandoned" ? { lifetime_seconds: ABANDONED_SECONDS } : {};
    const request = {
      key: `${this.#name}-intent`,
      body: { order_id: order.order_id, route: "dynamic_qr", ...lifetime },
    };
    const intent = await this.#client.keyed<Intent>(cashier, `${this.#station.path}/intents/`, request);
    if (ending === "qr_cancelled" || ending === "qr_raced") await this.#cancel(intent);
    const ended = await this.#untilEnded(intent);
    const outage = OUTAGE_REASONS.includes(ended.end_reason);
    const facts = { station: this.#station, plan: this.#plan, orderId: order.order_id, intentId: intent.intent_id };
    const end = { ...facts, events, kept, endReason: ended.end_reason };
    this.#require(ended, outage);
    if (ended.status === "succeeded") {
      return { ...end, orderStatus: "paid", intentStatus: "succeeded", sale: await this.#saleOf(ended) };
    }
    await this.#client.good(cashier, "POST", `orders/${order.order_id}/void/`);
    const intentStatus = ended.status === "expired" ? "expired" : "cancelled";
    return { ...end, orderStatus: "voided", intentStatus, sale: null };
  }

  #require(ended: Intent, outage: boolean): void {
    const { ending, scenario } = this.#plan;
    const title = `${this.#name} (${scenario}, ${ending}) ended as ${ended.status} ${ended.end_reason}`;
    if (outage) expect(ended.status, title).toBe("cancelled");
    else {
      expect(STATUSES_OF_ENDING[ending], title).toContain(ended.status);
      const isDeclined = ending === "qr_declined" || (ending === "qr_overtaken" && ended.status === "cancelled");
      expect(ended.end_reason, title).toBe(isDeclined ? DECLINE_REASONS[scenario] : "");
    }
  }

  /** Cancels the collection, which may have ended or may be settling. */
  async #cancel({ intent_id }: Intent): Promise<void> {
    await delay(this.#plan.cancelAfterMs);
    const { cashier } = this.#client;
    const path = `${this.#station.path}/intents/${intent_id}/cancel/`;
    const request = { key: `${this.#name}-cancel` };
    const cancel = () => this.#client.send<Intent & Refused>(cashier, "POST", path, request);
    const answers = await Promise.all(this.#plan.twice ? [cancel(), cancel()] : [cancel()]);
    const [answer] = answers;
    if (answer === undefined) throw new Error("There is no answer.");
    if (answer.status === 200) {
      for (const other of answers) expect([other.status, other.text]).toEqual([200, answer.text]);
      this.#client.keep(cashier, path, request, answer, 200);
      this.#client.events.push("intent_cancelled");
      return;
    }
    for (const { status, body, text } of answers) {
      expect(status, text).toBe(409);
      expect(["settlement_in_progress", "intent_not_actionable"], text).toContain(body.code);
    }
  }

  async #untilEnded({ intent_id }: Intent): Promise<Intent> {
    const path = `${this.#station.path}/intents/${intent_id}/`;
    const deadlineMs = performance.now() + ENDED_WITHIN_MS;
    for (;;) {
      const intent = await this.#client.good<Intent>(this.#client.cashier, "GET", path);
      if (["succeeded", "cancelled", "expired"].includes(intent.status)) return intent;
      const title = `${this.#name} (${this.#plan.scenario}, ${this.#plan.ending}), intent ${intent_id}, still is ${intent.status}`;
      expect(performance.now(), title).toBeLessThan(deadlineMs);
      await delay(POLL_MS);
    }
  }

  async #saleOf({ intent_id, order_id, amount, attestation, provider }: Intent): Promise<Collection["sale"]> {
    const transactionId = attestation?.transaction_id ?? 0;
    const reference = provider?.provider_reference ?? "";
    expect(attestation).toMatchObject({ by: "provider", cashier_id: null, reference });
    this.#client.events.push("provider_confirmed", "intent_succeeded");
    const order = await this.#client.good<Order>(this.#client.cashier, "GET", `orders/${order_id}/`);
    expect(order).toMatchObject({ status: "paid", transaction: { transaction_id: transactionId, intent_id, amount } });
    return { transactionId, amount, reference };
  }
}
