/**
 * The operator of the payment scheme, as an outside party. It signs callbacks with the config's real secret, and sends each
 * until it has an answer. It records every payment that it asserts and every answer.
 */
import { setTimeout as delay } from "node:timers/promises";
import { receiveCallback } from "../../services/bus/messages/callbacks.ts";
import { call } from "../../services/bus/operation.ts";
import { signature } from "../support/emvco-settings.ts";
import type { MoneyWorld } from "./money-world.ts";

/** A payment as a callback asserts it. */
export interface Assertion {
  readonly configId: number;
  readonly transactionId: string;
  readonly reference: string;
  readonly account: string;
  readonly amountMinor: number;
  readonly currency: string;
}

interface SentCallback {
  readonly configId: number;
  readonly secret: string;
  readonly body: string;
  /** The first answer to this callback. */
  answer: string | undefined;
}

/** Longer than a process needs to restart. */
const ANSWER_WITHIN_MS = 60_000;
const ATTEMPT_MS = 1_500;
const PAUSE_MS = 50;
/** The number of decimals in the scheme's amounts. */
const DECIMALS: Readonly<Record<string, number>> = { EUR: 2, USD: 2, JPY: 0 };

export class Scheme {
  readonly #world: Pick<MoneyWorld, "bus">;
  readonly #sent: SentCallback[] = [];
  /** Each payment that was asserted with a valid signature, once for each callback. */
  readonly assertions: Assertion[] = [];
  /** The transaction ids of callbacks whose signature was wrong. */
  readonly forged: string[] = [];
  /** A sentence for each wrong answer. */
  readonly complaints: string[] = [];

  constructor(world: Pick<MoneyWorld, "bus">) {
    this.#world = world;
  }

  /** Asserts this payment. Sends `copies` equal callbacks at the same time. */
  async pay(secret: string, money: Assertion, event: { readonly id: string; readonly copies?: number }): Promise<void> {
    this.assertions.push(money);
    const data = {
      reference: money.reference,
      transaction_id: money.transactionId,
      merchant_id: money.account,
      amount: amountText(money.amountMinor, money.currency),
      currency: money.currency,
    };
    await this.#send(secret, money.configId, { id: event.id, type: "payment.paid", data }, event.copies ?? 1);
  }

  /** Reports another event of a payment: a decline, or an unknown type. */
  async notify(
    secret: string,
    configId: number,
    event: { readonly id: string; readonly type: string; readonly reference: string },
  ): Promise<void> {
    await this.#send(secret, configId, { id: event.id, type: event.type, data: { reference: event.reference } }, 1);
  }

  /** Asserts a payment with a wrong signature, like a sender without the secret. */
  async forge(money: Assertion, id: string): Promise<void> {
    this.forged.push(money.transactionId);
    const { reference, transactionId: transaction_id, account: merchant_id, currency } = money;
    const amount = amountText(money.amountMinor, currency);
    const data = { reference, transaction_id, merchant_id, amount, currency };
    const body = JSON.stringify({ id, type: "payment.paid", data });
    const { status } = await this.#deliver({ configId: money.configId, secret: "guessed-secret", body });
    if (status !== 401 && status !== 429) this.complaints.push(`a forged callback was answered ${status}`);
  }

  /** Sends every callback again, and compares each answer with the first one. */
  async replayAll(): Promise<void> {
    const queue = [...this.#sent];
    const work = async (): Promise<void> => {
      for (let sent = queue.pop(); sent !== undefined; sent = queue.pop()) await this.#sendOnce(sent);
    };
    await Promise.all(Array.from({ length: 16 }, work));
  }

  async #send(secret: string, configId: number, body: object, copies: number): Promise<void> {
    const sent: SentCallback = { configId, secret, body: JSON.stringify(body), answer: undefined };
    this.#sent.push(sent);
    await Promise.all(Array.from({ length: copies }, () => this.#sendOnce(sent)));
  }

  async #sendOnce(sent: SentCallback): Promise<void> {
    const { status, body } = await this.#deliver(sent);
    const answer = `${status} ${body}`;
    sent.answer ??= answer;
    if (status !== 200) this.complaints.push(`a callback with a valid signature was answered ${answer}: ${sent.body}`);
    if (answer !== sent.answer)
      this.complaints.push(`the same callback was answered "${sent.answer}" and "${answer}": ${sent.body}`);
  }

  /** Sends the callback until it has an answer, also after a time in which the service does not run. */
  async #deliver(
    callback: Pick<SentCallback, "configId" | "secret" | "body">,
  ): Promise<{ status: number; body: string }> {
    const { configId, secret, body } = callback;
    const untilMs = Date.now() + ANSWER_WITHIN_MS;
    for (;;) {
      const headers = { "x-provider-signature": signature(body, secret) };
      const bodyBase64 = Buffer.from(body).toString("base64");
      try {
        const request = { configId, headers, bodyBase64, address: "192.0.2.7" };
        return await call(this.#world.bus.nc, receiveCallback, request, ATTEMPT_MS);
      } catch (error) {
        if (Date.now() > untilMs) throw new Error(`A callback was never answered: ${body}`, { cause: error });
      }
      await delay(PAUSE_MS);
    }
  }
}

function amountText(amountMinor: number, currency: string): string {
  const decimals = DECIMALS[currency] ?? 2;
  return (amountMinor / 10 ** decimals).toFixed(decimals);
}
