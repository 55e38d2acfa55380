/**
 * Records a callback whose signature is right: the record, the answer and the effect are one transaction. Called by
 * callbacks.ts only; decides about payments through asserted-payments.ts.
 */
import { createHash } from "node:crypto";
import type { Transaction } from "../db/pool.ts";
import type { CallbackEvent, Decline } from "./adapters/adapter.ts";
import { decidePayment, lockAssertedPayment } from "./asserted-payments.ts";
import type { ProvidersDeps } from "./deps.ts";
import { announceWritten, type Written, writeNothing } from "./issue-recording.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { countIssue } from "./metrics.ts";
import {
  findAnswer,
  insertCallback,
  insertVariant,
  type KnownCallback,
  type StoredAnswer,
  setVariantOutcome,
} from "./sql/callbacks.ts";
import type { ConfigRow } from "./sql/configs.ts";
import { lockPaymentByReference, type PaymentRow, recordEnd } from "./sql/payments.ts";
import { armTask, insertTask } from "./sql/tasks.ts";

interface Received {
  readonly config: ConfigRow;
  readonly event: CallbackEvent;
  readonly eventKey: string;
  readonly body: Uint8Array;
}

interface Recorded {
  readonly answer: StoredAnswer;
  readonly as: "recorded" | "duplicate";
}

/** The provider's event id, or the hash of the body; the prefix keeps the two apart. */
export function eventKeyOf(event: CallbackEvent, body: Uint8Array): string {
  return event.eventId === null ? `sha256:${sha256(body).toString("hex")}` : `id:${event.eventId}`;
}

/** Another process recorded the same event meanwhile: this transaction is rolled back. */
class RecordedMeanwhile extends Error {}

export async function recordCallback(deps: ProvidersDeps, received: Received): Promise<Recorded> {
  const { config, event, eventKey, body } = received;
  const key = { configId: config.config_id, eventKey };
  const recording = deps.database.begin(async (tx) => {
    const decide = await lockSubject(tx, received);
    const { outcome, intentId, write } = await decide();
    // Sent together, they take one round trip; PostgreSQL runs them in this order.
    const [written, inserted] = await Promise.all([
      write(),
      insertCallback(tx, { ...key, eventType: event.type, body, outcome, intentId }),
    ]);
    if (inserted === undefined) throw new RecordedMeanwhile();
    await announceWritten(tx, config.organization_id, written);
    return { ...inserted, ...written, outcome, intentId };
  });
  const recorded = await recording.catch((error: unknown) => {
    if (error instanceof RecordedMeanwhile) return undefined;
    throw error;
  });
  if (recorded === undefined) {
    const known = await findAnswer(deps.database, { ...key, body });
    if (known === undefined) throw new Error("A recorded callback has no answer.");
    return await repeatCallback(deps, known, received);
  }
  follow(deps, received, recorded);
  return { answer: recorded.answer, as: "recorded" };
}

/**
 * A known event gets its recorded answer. Another body under the same event id is a variant. It pays nothing, and a
 * payment in it becomes an issue unless the service knows the payment. Variants are stored up to a limit; further ones
 * are counted.
 */
export async function repeatCallback(deps: ProvidersDeps, known: KnownCallback, received: Received): Promise<Recorded> {
  if (!known.isSameBody) {
    const { callbackId } = known;
    const bodyHash = sha256(received.body);
    const eventKey = `${received.eventKey}#${bodyHash.toString("hex")}`;
    const kept = await deps.database.begin(async (tx) => {
      const { variantsPerEvent: atMost } = PROVIDER_LIMITS;
      // A variant that is only counted is decided too, so that no payment is lost.
      if ((await insertVariant(tx, { callbackId, bodyHash, body: received.body, atMost })) === "known")
        return undefined;
      const { outcome, intentId, write } = await decideVariant(tx, { ...received, eventKey });
      const [written] = await Promise.all([write(), setVariantOutcome(tx, { callbackId, bodyHash, outcome })]);
      await announceWritten(tx, received.config.organization_id, written);
      return { callbackId, ...written, outcome, intentId };
    });
    if (kept !== undefined) follow(deps, received, kept);
  }
  return { answer: known.answer, as: "duplicate" };
}

/** After the commit: logs the outcome, counts a new issue, and starts the task. */
function follow(
  deps: ProvidersDeps,
  { config, event }: Received,
  done: Written & { readonly callbackId: number; readonly outcome: string; readonly intentId: number | null },
): void {
  const { callbackId, task, outcome, intentId, issueId } = done;
  countIssue(deps.metrics, outcome, issueId);
  deps.log.info(
    { callbackId, configId: config.config_id, type: event.type, outcome, intentId, issueId },
    "callback recorded",
  );
  if (task !== undefined) deps.tasks.start(task);
}

/** What an event does: decided first and written afterwards, so that all writes take one round trip. */
interface Effect {
  readonly outcome: string;
  readonly intentId: number | null;
  readonly write: () => Promise<Written>;
}

/** Locks the payment that the event is about, and returns how to decide about it. Writes nothing. */
async function lockSubject(
  tx: Transaction,
  { config, event, eventKey }: Omit<Received, "body">,
): Promise<() => Promise<Effect> | Effect> {
  const { effect } = event;
  const { config_id: configId, organization_id: organizationId } = config;
  switch (effect.kind) {
    case "none":
      return () => ({ outcome: "ignored", intentId: null, write: writeNothing });
    case "paid": {
      const source = { configId, organizationId, eventKey, learnedFrom: event.type };
      const held = await lockAssertedPayment(tx, source, effect.money);
      return () => decidePayment(tx, { source, money: effect.money, mayPay: true }, held);
    }
    case "ended": {
      const { reason } = effect;
      const payment = await lockPaymentByReference(tx, { configId, reference: effect.reference });
      if (payment === undefined) return () => ({ outcome: "unknown_payment", intentId: null, write: writeNothing });
      const { intent_id: intentId } = payment;
      // A late event does not undo a payment.
      if (payment.paid_reference !== null) return () => ({ outcome: "out_of_order", intentId, write: writeNothing });
      return () => ({ outcome: reason, intentId, write: () => fail(tx, payment, reason) });
    }
  }
}

/** A variant of another event: only an asserted payment in it counts, and it pays nothing. */
async function decideVariant(tx: Transaction, { config, event, eventKey }: Omit<Received, "body">): Promise<Effect> {
  const { effect } = event;
  if (effect.kind !== "paid") return { outcome: "ignored", intentId: null, write: writeNothing };
  const { config_id: configId, organization_id: organizationId } = config;
  const source = { configId, organizationId, eventKey, learnedFrom: `${event.type}, under the id of another event` };
  const held = await lockAssertedPayment(tx, source, effect.money);
  return await decidePayment(tx, { source, money: effect.money, mayPay: false }, held);
}

async function fail(tx: Transaction, payment: PaymentRow, reason: Decline): Promise<Written> {
  const { intent_id: intentId } = payment;
  const { taskClaimMs: dueInMs } = PROVIDER_LIMITS;
  await recordEnd(tx, { intentId });
  const first = await insertTask(tx, { intentId, kind: "fail", detail: { reason }, dueInMs, isTaken: true });
  // The station has an end already. This task clears an outcome that has become unknown since.
  const task = first ?? (await armTask(tx, { intentId, kind: "clear", detail: {}, dueInMs }));
  return { task: { ...task, payment }, issueId: undefined, events: [] };
}

function sha256(body: Uint8Array): Buffer {
  return createHash("sha256").update(body).digest();
}
