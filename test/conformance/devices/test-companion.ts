/** A smart POS companion of the tests. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Shown } from "../../../clients/conformance/devices/device.ts";
import { type Answer, TestDevice } from "./test-device.ts";

export type CompanionFlaw =
  | "trusts its local clock about the deadline"
  | "refuses fields that it does not know"
  | "collects again for each ETag"
  | "abandons a slow body"
  | "reports under a new key each time"
  | "reports without a key"
  | "sends an amount"
  | "sends an amount with a decline"
  | "reports a success after silence"
  | "reports a decline after silence"
  | "reports a cancellation as a decline"
  | "launches again after a power cut"
  | "reports a decline as a cancellation"
  | "repeats a report after 409"
  | "repeats an early report after 409"
  | "repeats a report after 409 under a new key"
  | "forgets a report without an answer"
  | "forgets a report at 429"
  | "forgets a report at 503"
  | "forgets a report at 502"
  | "forgets a report at 403"
  | "reports each answer of the payment application"
  | "forgets its report in a power cut";

interface Assignment {
  readonly intent_id: number;
  readonly status: string;
  readonly amount: string;
  readonly expires_at: string;
}

interface Step {
  readonly intentId: number;
  readonly key: string;
  outcome: string | undefined;
  isAnswered: boolean;
}

const OUTCOMES = {
  approve: "reported_success",
  approve_twice: "reported_success",
  decline: "reported_declined",
  cancel: "reported_cancelled",
  hold: "reported_unknown",
} as const;
const KNOWN = ["assignment", "server_time"];
const TRIES_MS = 1_000;
const PAYMENT_MS = 200;
/** Shorter than any collection. */
const EARLY_MS = 20_000;

const REPEATING: readonly (string | undefined)[] = [
  "repeats a report after 409",
  "repeats an early report after 409",
  "repeats a report after 409 under a new key",
];

export class TestCompanion extends TestDevice<CompanionFlaw> {
  /** The steps survive a power cut. */
  #steps = new Map<number, Step>();
  #etag = "";
  #seen = "";
  #finished = Promise.withResolvers<void>();

  async finish(): Promise<void> {
    this.#finished.resolve();
  }

  async shown(): Promise<Shown> {
    throw new Error("A companion shows nothing.");
  }

  protected override answerMs(operation: string): number {
    return this.flaw === "abandons a slow body" && operation === "assignment/" ? 1_000 : super.answerMs(operation);
  }

  protected async started(signal: AbortSignal): Promise<void> {
    this.#etag = "";
    if (this.flaw === "forgets its report in a power cut") {
      for (const step of this.#steps.values()) step.isAnswered = true;
    }
    for (const step of this.#steps.values()) {
      if (step.outcome === undefined && this.flaw === "launches again after a power cut") {
        await delay(PAYMENT_MS, undefined, { signal });
        step.outcome = OUTCOMES[this.act];
      }
      step.outcome ??= "reported_unknown";
      await this.#report(step, signal);
    }
  }

  protected async poll(signal: AbortSignal): Promise<number | undefined> {
    const before = this.#etag;
    const answer = await this.send("GET", "assignment/", { etag: this.#etag });
    if (answer?.status === 200) await this.#take(answer, before, signal);
    return answer?.status;
  }

  async #take(answer: Answer, before: string, signal: AbortSignal): Promise<void> {
    this.#etag = answer.etag;
    const isStrict = this.flaw === "refuses fields that it does not know";
    if (isStrict && Object.keys(answer.json).some((name) => !KNOWN.includes(name))) return;
    const assignment = answer.json["assignment"] as Assignment | null;
    if (assignment === null) return;
    const seen = `${assignment.intent_id} ${assignment.status}`;
    const isAgain = this.flaw === "collects again for each ETag" && this.#etag !== before && this.#seen === seen;
    this.#seen = seen;
    if (this.#steps.has(assignment.intent_id) && !isAgain) return;
    if (assignment.status === "processing" && !isAgain) return;
    const offsetMs = Date.parse(String(answer.json["server_time"])) - Date.now();
    const leftMs = Date.parse(assignment.expires_at) - Date.now() - offsetMs;
    if (this.flaw === "trusts its local clock about the deadline" && Date.parse(assignment.expires_at) < Date.now())
      return;
    await this.whileCollecting(() => this.#collect(assignment, leftMs, signal));
  }

  async #collect({ intent_id: intentId, amount }: Assignment, leftMs: number, signal: AbortSignal): Promise<void> {
    const step: Step = { intentId, key: randomUUID(), outcome: undefined, isAnswered: false };
    this.#steps.set(intentId, step);
    const { act } = this;
    if (act === "hold") {
      this.#finished = Promise.withResolvers();
      const hasFinished = this.#finished.promise.then(() => true);
      const waitMs = this.flaw === "repeats an early report after 409" ? EARLY_MS : leftMs;
      const isApproved = await Promise.race([hasFinished, delay(waitMs, false, { signal })]);
      step.outcome = isApproved ? "reported_success" : this.#silence();
    } else {
      await delay(PAYMENT_MS, undefined, { signal });
      step.outcome = OUTCOMES[act];
    }
    if (act === "cancel" && this.flaw === "reports a cancellation as a decline") step.outcome = "reported_declined";
    if (act === "decline" && this.flaw === "reports a decline as a cancellation") step.outcome = "reported_cancelled";
    await this.#report(step, signal, amount);
    if (act === "approve_twice" && this.flaw === "reports each answer of the payment application") {
      await this.#report({ ...step, key: randomUUID(), isAnswered: false }, signal);
    }
  }

  #sendsAmount({ outcome }: Step): boolean {
    if (this.flaw === "sends an amount with a decline") return outcome === "reported_declined";
    return this.flaw === "sends an amount";
  }

  #silence(): string {
    if (this.flaw === "reports a success after silence") return "reported_success";
    return this.flaw === "reports a decline after silence" ? "reported_declined" : "reported_unknown";
  }

  async #report(step: Step, signal: AbortSignal, amount = ""): Promise<void> {
    let repetitions = REPEATING.includes(this.flaw) ? 2 : 0;
    let status: number | undefined;
    while (!step.isAnswered) {
      const isNew = status === 409 && this.flaw === "repeats a report after 409 under a new key";
      const key = isNew || this.flaw === "reports under a new key each time" ? randomUUID() : step.key;
      const json = {
        intent_id: step.intentId,
        outcome: step.outcome,
        provider_reference: `TEST-${step.intentId}`,
        provider_code: "00",
        ...(this.flaw === "reports without a key" ? {} : { client_idempotency_key: key }),
        ...(this.#sendsAmount(step) ? { amount } : {}),
      };
      status = (await this.send("POST", "assignment/report/", { json }))?.status;
      const isForgotten =
        (status === undefined && this.flaw === "forgets a report without an answer") ||
        this.flaw === `forgets a report at ${status}`;
      const isFinal = status === 200 || status === 404 || (status === 409 && repetitions-- <= 0);
      if (isFinal || isForgotten) step.isAnswered = true;
      else await delay(TRIES_MS, undefined, { signal });
    }
  }
}
