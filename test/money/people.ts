/** The people and devices of one filial, which do their parts of a schedule at the same time. */

import { setTimeout as delay } from "node:timers/promises";
import type { Actor } from "../../machines/actor.ts";
import * as issueMessages from "../../services/bus/messages/issues.ts";
import { changeOrder, voidOrder } from "../../services/bus/messages/orders.ts";
import type {
  RequestedCommand,
  StationRequest,
  StationResponse,
} from "../../services/bus/messages/station-commands.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { payStray, playGuest } from "./guest.ts";
import type { LoggedEvent } from "./log-reader.ts";
import { type Filial, insist, type MoneyWorld } from "./money-world.ts";
import type { CashierStep, CompanionPlan, FilialPlan } from "./schedule.ts";
import type { Scheme } from "./scheme.ts";

export interface Acknowledged {
  readonly request: StationRequest;
  readonly response: StationResponse;
}

/** What the people of a filial know, besides the log and the database. */
export interface Diary {
  readonly acknowledged: Acknowledged[];
  /** Orders whose voiding was acknowledged. */
  readonly voided: number[];
}

let keys = 0;

export class Playing {
  readonly diary: Diary = { acknowledged: [], voided: [] };
  readonly #world: MoneyWorld;
  readonly #scheme: Scheme;
  readonly #filial: Filial;
  readonly #plan: FilialPlan;
  /** The lease's holder, as far as the people know. */
  #holder = 0;
  readonly #guests: Promise<void>[] = [];

  constructor(parts: { world: MoneyWorld; scheme: Scheme; filial: Filial; plan: FilialPlan }) {
    ({ world: this.#world, scheme: this.#scheme, filial: this.#filial, plan: this.#plan } = parts);
  }

  /** Resolves when all have done their part. */
  async play(): Promise<void> {
    const { stationId } = this.#filial;
    const stopWatching = this.#world.log.onCommit((commit) => {
      if (commit.stationId === stationId) for (const event of commit.events) this.#react(event);
    });
    const isOver = new AbortController();
    const operator = this.#operate(isOver.signal);
    await Promise.all(this.#plan.tablets.map((steps) => this.#work(steps)));
    // Guests and companions begin with a collection, and no collection begins after this point.
    while (this.#guests.length > 0) await Promise.all(this.#guests.splice(0));
    stopWatching();
    isOver.abort();
    await operator;
  }

  #count = { dynamic_qr: 0, smart_pos: 0 };

  #react({ type, intentId, route }: LoggedEvent): void {
    if (type !== "intent_created") return;
    if (route === "dynamic_qr") {
      const steps = this.#plan.guests[this.#count.dynamic_qr++ % this.#plan.guests.length] ?? [];
      const scene = { world: this.#world, scheme: this.#scheme, filial: this.#filial, intentId: Number(intentId) };
      this.#guests.push(playGuest(scene, steps));
    }
    if (route === "smart_pos") {
      const plan = this.#plan.companion[this.#count.smart_pos++ % this.#plan.companion.length];
      if (plan !== undefined) this.#guests.push(this.#handle(Number(intentId), plan));
    }
  }

  async #act(actor: Actor, command: RequestedCommand): Promise<StationResponse> {
    keys += 1;
    const request: StationRequest = { commandId: `money:${keys}`, actor, command };
    const response = await this.#world.command(this.#filial.stationId, request);
    this.diary.acknowledged.push({ request, response });
    return response;
  }

  #cashier(): Actor & { kind: "cashier" } {
    const { userId, name } = this.#filial.cashiers[this.#holder === 0 ? 0 : 1];
    return { kind: "cashier", id: userId, name };
  }

  async #work(steps: readonly CashierStep[]): Promise<void> {
    for (const step of steps) {
      await delay(step.pauseMs);
      await this.#do(step);
    }
  }

  async #do(step: CashierStep): Promise<void> {
    switch (step.do) {
      case "collect":
        return await this.#collect(step);
      case "attest":
      case "cancel": {
        const intentId = this.#newest(step.newest);
        if (intentId === undefined) return;
        return await (step.do === "attest" ? this.#attest(intentId) : this.#cancel(intentId));
      }
      case "void":
      case "change_and_back":
        return await this.#rewrite(step.do, step.order);
      case "repeat": {
        const { request } = this.diary.acknowledged.at(-1 - step.newest) ?? {};
        if (request !== undefined) await this.#world.command(this.#filial.stationId, request);
        return;
      }
      case "hand_over":
        await this.#act(this.#cashier(), { type: "lease_release" });
        this.#holder = 1 - this.#holder;
        await this.#act(this.#cashier(), { type: "lease_acquire" });
    }
  }

  async #collect(step: Extract<CashierStep, { do: "collect" }>): Promise<void> {
    const { orderId } = this.#order(step.order);
    const { route, lifetimeMs, confirms: confirmsMoneyMayHaveMoved, ending, afterMs } = step;
    const command = { type: "intent_create", route, orderId, lifetimeMs, confirmsMoneyMayHaveMoved } as const;
    const { reply } = await this.#act(this.#cashier(), command);
    if (!reply.ok || reply.type !== "intent") return;
    const { intentId } = reply;
    await Promise.all([delay(afterMs), this.#meanwhile(step.meanwhile, step.order)]);
    const attests = ending === "attest" || ending === "attest_and_cancel";
    const cancels = ending === "cancel" || ending === "attest_and_cancel";
    await Promise.all([attests ? this.#attest(intentId) : undefined, cancels ? this.#cancel(intentId) : undefined]);
  }

  async #meanwhile(what: Extract<CashierStep, { do: "collect" }>["meanwhile"], nth: number): Promise<void> {
    if (what === "voided") await this.#rewrite("void", nth);
    // The cashier does not wait for this, so the price is restored before or after the call of the seam.
    if (what === "changed_and_back") this.#guests.push(this.#rewrite("change_and_back", nth));
    if (what === "paid_by_unregistered_payment") {
      const { orderId, amountMinor } = this.#order(nth);
      const transactionId = await payStray({ scheme: this.#scheme, filial: this.#filial }, amountMinor);
      const { operator: caller } = this.#filial;
      const { issues } = await insist(() =>
        this.#world.ask(issueMessages.listIssues, { caller, limit: 50, status: "open" }, 1_500),
      );
      const issue = issues.find(({ providerReference }) => providerReference === transactionId);
      if (issue !== undefined) await this.#attribute(issue.issueId, orderId);
    }
  }

  /** Like a cashier who waits for the terminal, tries again while there is no evidence. */
  async #attest(intentId: number): Promise<void> {
    for (const pauseMs of [150, 300, 0]) {
      const command = { type: "intent_attest", intentId, reference: `slip-${intentId}` } as const;
      const { reply } = await this.#act(this.#cashier(), command);
      if (reply.ok || reply.code !== "evidence_required") return;
      await delay(pauseMs);
    }
  }

  async #cancel(intentId: number): Promise<void> {
    await this.#act(this.#cashier(), { type: "intent_cancel", intentId });
  }

  #order(nth: number): Filial["orders"][number] {
    const order = this.#filial.orders[nth % this.#filial.orders.length];
    if (order === undefined) throw new Error("A filial has orders.");
    return order;
  }

  /** The newest collection, or the one with `before` newer ones. */
  #newest(before: number): number | undefined {
    const created = this.#world.log.eventsOf(this.#filial.stationId).filter(({ type }) => type === "intent_created");
    const intentId = created.at(-1 - before)?.["intentId"];
    return intentId === undefined ? undefined : Number(intentId);
  }

  async #rewrite(how: "void" | "change_and_back", nth: number): Promise<void> {
    const { orderId, amountMinor } = this.#order(nth);
    const caller = this.#filial.cashiers[0];
    try {
      if (how === "void") {
        await insist(() => this.#world.ask(voidOrder, { caller, orderId }));
        this.diary.voided.push(orderId);
        return;
      }
      for (const price of [amountMinor + 50, amountMinor]) {
        const lines = [{ name: "Soup", quantity: 1, unitAmountMinor: String(price) }];
        await insist(() => this.#world.ask(changeOrder, { caller, orderId, lines }));
        await delay(100);
      }
    } catch (error) {
      ignoreConflict(error);
    }
  }

  async #handle(intentId: number, { presents, outcomes, afterMs }: CompanionPlan): Promise<void> {
    const companion: Actor = { kind: "device", id: this.#filial.companionId };
    if (presents) await this.#act(companion, { type: "intent_present", intentId });
    for (const outcome of outcomes) {
      await delay(afterMs);
      const evidence = { outcome, providerReference: `card-${intentId}`, providerCode: "00" };
      await this.#act(companion, { type: "intent_report", intentId, ...evidence });
    }
  }

  /** Polls the issues, and handles each as planned. */
  async #operate(isOver: AbortSignal): Promise<void> {
    const { operator: caller } = this.#filial;
    const seen = new Set<number>();
    for (;;) {
      const isLast = isOver.aborted;
      const { issues } = await insist(() =>
        this.#world.ask(issueMessages.listIssues, { caller, limit: 50, status: "open" }, 1_500),
      );
      for (const issue of issues.toReversed()) {
        // An issue of another filial of the organization is not for this plan.
        if (seen.has(issue.issueId) || issue.configId !== this.#filial.configId) continue;
        seen.add(issue.issueId);
        await this.#decide(issue, seen.size - 1);
      }
      if (isLast) return;
      await delay(60);
    }
  }

  async #decide(issue: issueMessages.Issue, nth: number): Promise<void> {
    const act = this.#plan.operator[nth % this.#plan.operator.length] ?? "leave";
    const itsOrder = issue.orderId ?? this.#order(nth).orderId;
    const other = this.#order(nth + 1).orderId;
    const attribute = (orderId: number) => this.#attribute(issue.issueId, orderId);
    const close = () => this.#close(issue.issueId);
    if (act === "its_order") await attribute(itsOrder);
    if (act === "other_order") await attribute(other);
    if (act === "two_orders_at_once") await Promise.all([attribute(itsOrder), attribute(other)]);
    if (act === "attribute_and_close") await Promise.all([attribute(itsOrder), close()]);
    if (act === "close") await close();
  }

  /** Attributes the issue. A refusal is an answer too: the order has changed or is paid, or another attribution was faster. */
  async #attribute(issueId: number, orderId: number): Promise<void> {
    const request = { caller: this.#filial.operator, issueId, orderId, reason: "the guest has a receipt" };
    await insist(() => this.#world.ask(issueMessages.attributeIssue, request, 2_000)).catch(ignoreConflict);
  }

  async #close(issueId: number): Promise<void> {
    const request = { caller: this.#filial.operator, issueId, reason: "paid back" };
    await insist(() => this.#world.ask(issueMessages.closeIssue, request, 2_000)).catch(ignoreConflict);
  }
}

function ignoreConflict(error: unknown): void {
  if (!(error instanceof RefusedError)) throw error;
  const expected = ["conflict", "order_changed", "order_already_paid", "order_voided", "money_already_used"];
  if (!expected.includes(error.refusal.code)) throw error;
}
