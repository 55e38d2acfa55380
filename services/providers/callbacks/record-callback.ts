/** Recording a callback whose signature is right: the record, the answer and the effect are one transaction. */
import { createHash } from "node:crypto";
import type { Transaction } from "../../db/pool.ts";
import type { CallbackEvent, Decline } from "../adapters/adapter.ts";
import type { ProvidersDeps } from "../deps.ts";
import { countIssue } from "../figures.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import {
  findAnswer,
  insertCallback,
  insertVariant,
  type KnownCallback,
  type StoredAnswer,
  setVariantOutcome,
} from "../sql/callbacks.ts";
import type { ConfigRow } from "../sql/configs.ts";
import { keepEnd, lockPaymentByReference, type PaymentRow } from "../sql/payments.ts";
import { armTask, insertTask } from "../sql/tasks.ts";
import { type Written, writeNothing } from "./raise-issue.ts";
import { decideMoney, holdPayment } from "./take-money.ts";

export interface Received {
  readonly config: ConfigRow;
  readonly event: CallbackEvent;
  readonly eventKey: string;
  readonly body: Uint8Array;
}

export interface Recorded {
  readonly answer: StoredAnswer;
  readonly as: "recorded" | "duplicate";
}

/** The provider's own id, or the hash of the body. The two cannot be mistaken for each other. */
export function eventKeyOf(event: CallbackEvent, body: Uint8Array): string {
  return event.eventId === null ? `sha256:${sha256(body).toString("hex")}` : `id:${event.eventId}`;
}

/** The same event was recorded while this one was decided: nothing of what this one has written stays. */
class RecordedMeanwhile extends Error {}

export async function record(deps: ProvidersDeps, received: Received): Promise<Recorded> {
  const { config, event, eventKey, body } = received;
  const key = { configId: config.config_id, eventKey };
  const recording = deps.database.begin(async (sql) => {
    const decide = await hold(sql, received);
    const { outcome, intentId, write } = await decide();
    // What goes out without waiting in between takes one round trip; PostgreSQL does it in this order.
    const [written, inserted] = await Promise.all([
      write(),
      insertCallback(sql, { ...key, eventType: event.type, body, outcome, intentId }),
    ]);
    if (inserted === undefined) throw new RecordedMeanwhile();
    return { ...inserted, ...written, outcome, intentId };
  });
  const recorded = await recording.catch((error: unknown) => {
    if (error instanceof RecordedMeanwhile) return undefined;
    throw error;
  });
  if (recorded === undefined) {
    const known = await findAnswer(deps.database, { ...key, body });
    if (known === undefined) throw new Error("A recorded callback has no answer.");
    return await repeat(deps, known, received);
  }
  follow(deps, received, recorded);
  return { answer: recorded.answer, as: "recorded" };
}

/**
 * A known event gets its recorded answer. One that comes with another body is kept beside the first, because it may speak
 * of money: it pays nothing, and money in it is an issue, unless it is known already. Beyond a number they are counted.
 */
export async function repeat(deps: ProvidersDeps, known: KnownCallback, received: Received): Promise<Recorded> {
  if (!known.isSameBody) {
    const { callbackId } = known;
    const bodyHash = sha256(received.body);
    const eventKey = `${received.eventKey}#${bodyHash.toString("hex")}`;
    const kept = await deps.database.begin(async (sql) => {
      const { variantsPerEvent: atMost } = PROVIDER_LIMITS;
      // One that is not kept is looked at all the same: money in it must not be lost.
      if ((await insertVariant(sql, { callbackId, bodyHash, body: received.body, atMost })) === "known")
        return undefined;
      const { outcome, intentId, write } = await holdVariant(sql, { ...received, eventKey });
      const [written] = await Promise.all([write(), setVariantOutcome(sql, { callbackId, bodyHash, outcome })]);
      return { callbackId, ...written, outcome, intentId };
    });
    if (kept !== undefined) follow(deps, received, kept);
  }
  return { answer: known.answer, as: "duplicate" };
}

/** What follows once the transaction has committed. */
function follow(
  deps: ProvidersDeps,
  { config, event }: Received,
  done: Written & { readonly callbackId: number; readonly outcome: string; readonly intentId: number | null },
): void {
  const { callbackId, task, outcome, intentId, issueId } = done;
  countIssue(deps.figures, outcome, issueId);
  deps.log.info(
    { callbackId, configId: config.config_id, type: event.type, outcome, intentId, issueId },
    "callback taken",
  );
  if (task !== undefined) deps.tasks.start(task);
}

/** What an event does: decided first and then written, so that the writing takes one round trip. */
interface Effect {
  readonly outcome: string;
  readonly intentId: number | null;
  readonly write: () => Promise<Written>;
}

/** Holds what the event speaks of, and returns how to decide about it. Writes nothing. */
async function hold(
  sql: Transaction,
  { config, event, eventKey }: Omit<Received, "body">,
): Promise<() => Promise<Effect> | Effect> {
  const { effect } = event;
  const { config_id: configId, organization_id: organizationId } = config;
  switch (effect.kind) {
    case "none":
      return () => ({ outcome: "ignored", intentId: null, write: writeNothing });
    case "paid": {
      const source = { configId, organizationId, eventKey, learnedFrom: event.type };
      const held = await holdPayment(sql, source, effect.money);
      return () => decideMoney(sql, { source, money: effect.money, mayPay: true }, held);
    }
    case "ended": {
      const { reason } = effect;
      const payment = await lockPaymentByReference(sql, { configId, reference: effect.reference });
      if (payment === undefined) return () => ({ outcome: "unknown_payment", intentId: null, write: writeNothing });
      const { intent_id: intentId } = payment;
      // Money that is there is not taken back by an event that was overtaken.
      if (payment.paid_reference !== null) return () => ({ outcome: "out_of_order", intentId, write: writeNothing });
      return () => ({ outcome: reason, intentId, write: () => fail(sql, payment, reason) });
    }
  }
}

/** An event under the id of another one: of such a one only money counts, and it pays nothing. */
async function holdVariant(sql: Transaction, { config, event, eventKey }: Omit<Received, "body">): Promise<Effect> {
  const { effect } = event;
  if (effect.kind !== "paid") return { outcome: "ignored", intentId: null, write: writeNothing };
  const { config_id: configId, organization_id: organizationId } = config;
  const source = { configId, organizationId, eventKey, learnedFrom: `${event.type}, under the id of another event` };
  const held = await holdPayment(sql, source, effect.money);
  return await decideMoney(sql, { source, money: effect.money, mayPay: false }, held);
}

async function fail(sql: Transaction, payment: PaymentRow, reason: Decline): Promise<Written> {
  const { intent_id: intentId } = payment;
  const { taskClaimMs: dueInMs } = PROVIDER_LIMITS;
  await keepEnd(sql, { intentId });
  const told = await insertTask(sql, { intentId, kind: "fail", detail: { reason }, dueInMs, isTaken: true });
  // The station was told of an end before; said again, it takes the doubts away that have come since.
  const task = told ?? (await armTask(sql, { intentId, kind: "clear", detail: {}, dueInMs }));
  return { task: { ...task, payment }, issueId: undefined };
}

function sha256(body: Uint8Array): Buffer {
  return createHash("sha256").update(body).digest();
}
