/**
 * Payments at providers, one per intent. The row is written before the provider is called, so that a callback that
 * arrives before the answer finds the row. The first answer is stored; every other request for the intent waits for it.
 *
 * Calls sql and the adapters. tasks.ts polls and withdraws what is registered here.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { KillSwitches } from "../../machines/standing.ts";
import type * as bus from "../bus/messages/provider-payments.ts";
import type { Handler, ReplyOf, RequestOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { AskedPayment } from "./adapters/adapter.ts";
import { type CreatedPayment, ProviderError, type ProviderFailure } from "./adapters/adapter.ts";
import type { ProvidersDeps } from "./deps.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { accessOf } from "./secrets.ts";
import { type ConfigRow, findConfig, findUsableConfig } from "./sql/configs.ts";
import * as sql from "./sql/payments.ts";
import { armTask, dropPoll, insertTask, moveUntakenTask } from "./sql/tasks.ts";

type Request = RequestOf<typeof bus.createProviderPayment>;
type Reply = ReplyOf<typeof bus.createProviderPayment>;
type Place = Pick<Request, "organizationId" | "stationId" | "configId">;

/**
 * Answers within `createTotalMs`, and never throws for a failure of the provider. Refuses with `unavailable` when
 * another request for the intent is still under way at that time. Also refuses so while the kill switches are not
 * known, because the service must not call a frozen provider.
 */
export async function createProviderPayment(deps: ProvidersDeps, request: Request): Promise<Reply> {
  const deadlineMs = performance.now() + PROVIDER_LIMITS.createTotalMs;
  const earlier = await sql.findPayment(deps.database, request.intentId);
  if (earlier !== undefined) return await waitForAnswer(deps, request, deadlineMs);
  const config = await findUsableConfig(deps.database, request);
  if (config === undefined) return { created: false, reason: "provider_not_configured" };
  if (isFrozen(deps, request)) return { created: false, reason: "provider_frozen" };
  const { callMs, createMarginMs, shortestCallMs } = PROVIDER_LIMITS;
  const latestStartMs = deadlineMs - createMarginMs - shortestCallMs;
  const mostWaitMs = Math.max(0, latestStartMs - performance.now());
  const release = await deps.creations.acquire(request.configId, mostWaitMs, config.kind);
  // The provider was not asked, so no guest can have paid.
  if (release === undefined) return { created: false, reason: "provider_unavailable" };
  try {
    const payment = await registerPayment(deps, request, config);
    if (payment === undefined) return await waitForAnswer(deps, request, deadlineMs);
    const leftMs = deadlineMs - createMarginMs - performance.now();
    return await ask(deps, { config, payment, callMs: Math.max(1, Math.min(callMs, leftMs)) });
  } finally {
    release();
  }
}

/**
 * Whether a kill switch of the provider, the platform, the organization or the station forbids new electronic payments.
 * Refuses with `unavailable` while the switches are not known: the host asks again, and another process may know them.
 */
function isFrozen({ switches }: Pick<ProvidersDeps, "switches">, asked: Request): boolean {
  if (!switches.isTrusted()) throw new RefusedError({ code: "unavailable" });
  return isSwitchOn(switches.current(), asked);
}

function isSwitchOn({ platform, organizations, stations, providers }: KillSwitches, asked: Place): boolean {
  const { organizationId, stationId, configId } = asked;
  return platform || organizations.has(organizationId) || stations.has(stationId) || providers.has(configId);
}

/**
 * Writes the payment and the task of its first poll, which finds the payment even when this process dies before the
 * provider answers. Undefined when the intent has a payment already. Refuses with `conflict` an intent that has ended.
 */
async function registerPayment(
  deps: ProvidersDeps,
  request: Request,
  config: ConfigRow,
): Promise<sql.PaymentRow | undefined> {
  const { intentId } = request;
  const adapter = deps.adapters[config.kind];
  const askMs = PROVIDER_LIMITS.callMs + PROVIDER_LIMITS.createMarginMs;
  const account = adapter.accountOf(config.settings);
  return await deps.database.begin(async (tx) => {
    await sql.lockIntent(tx, intentId);
    if (await sql.isWithdrawn(tx, intentId)) throw endedConflict();
    const payment = await sql.createProviderPayment(tx, {
      ...request,
      reference: newReference(),
      account,
      config,
      askMs,
    });
    if (payment !== undefined && adapter.answersQuestions)
      await insertTask(tx, { intentId, kind: "poll", dueInMs: askMs + PROVIDER_LIMITS.firstPollMs });
    return payment;
  });
}

const endedConflict = () =>
  new RefusedError({ code: "conflict", detail: "This collection has ended; no provider is asked." });

/**
 * A station whose log has lost a collection may create it again under the same id, with a later deadline, and for an order
 * that has changed since. The guest must not see the QR of the lost collection. The station ends the new one and reports
 * that end, so the payment is withdrawn.
 */
function isOfSameTerms(payment: sql.PaymentRow, request: Request): boolean {
  return (
    payment.station_id === request.stationId &&
    payment.config_id === request.configId &&
    payment.amount_minor === request.amountMinor &&
    payment.currency === request.currency &&
    // The provider ends the payment at this time, and the polls end then too.
    payment.expires_at.getTime() === request.expiresAtMs
  );
}

const otherTermsConflict = () =>
  new RefusedError({
    code: "conflict",
    detail:
      "This collection was already requested from its provider with another station, config, amount, currency or deadline.",
  });

/**
 * Waits for another request that is under way. If its process has ended, the provider is asked again with the same
 * reference.
 */
async function waitForAnswer(deps: ProvidersDeps, request: Request, deadlineMs: number): Promise<Reply> {
  for (;;) {
    const payment = await sql.findPayment(deps.database, request.intentId);
    if (payment === undefined) throw new Error("A registered payment is missing.");
    if (!isOfSameTerms(payment, request)) throw otherTermsConflict();
    if (payment.status === "failed") return replyOf(payment);
    // A task withdraws the payment that the provider has made or may have made.
    if (payment.withdrawn_at !== null) throw endedConflict();
    if (payment.status === "ready") return replyOf(payment);
    if (performance.now() + PROVIDER_LIMITS.answerPollMs >= deadlineMs) {
      // Another process may still get an answer; the host asks again for it.
      if (payment.asked_until.getTime() > deps.bus.clock.nowMs()) throw new RefusedError({ code: "unavailable" });
      return await storeAnswer(deps, payment, { failure: "provider_timed_out", mayHaveTakenEffect: true });
    }
    const reply = await takeOver(deps, request, deadlineMs);
    if (reply !== undefined) return reply;
    await delay(PROVIDER_LIMITS.answerPollMs);
  }
}

/** Asks again when the earlier request has run out of time, and there is time enough for a call. */
async function takeOver(deps: ProvidersDeps, request: Request, deadlineMs: number): Promise<Reply | undefined> {
  const callMs = Math.min(PROVIDER_LIMITS.callMs, deadlineMs - performance.now() - PROVIDER_LIMITS.createMarginMs);
  if (callMs < PROVIDER_LIMITS.shortestCallMs) return undefined;
  const isForbidden = isFrozen(deps, request);
  const payment = await sql.takeOverRequest(deps.database, request.intentId, callMs + PROVIDER_LIMITS.createMarginMs);
  const config = payment === undefined ? undefined : await findConfig(deps.database, request);
  if (payment === undefined || config === undefined) return undefined;
  // The earlier request may have reached the provider, so what it may have made is withdrawn.
  if (isForbidden) return await storeAnswer(deps, payment, { failure: "provider_frozen", mayHaveTakenEffect: true });
  return await ask(deps, { config, payment, callMs });
}

type Answer =
  | { readonly created: CreatedPayment }
  | { readonly failure: ProviderFailure | "provider_frozen"; readonly mayHaveTakenEffect: boolean };

async function ask(
  deps: ProvidersDeps,
  asked: { readonly config: ConfigRow; readonly payment: sql.PaymentRow; readonly callMs: number },
): Promise<Reply> {
  const { config, payment } = asked;
  const startedAtMs = performance.now();
  const answer = await answerOf(deps, asked).catch(async (error: unknown) => {
    // The failure is not the provider's: the next request need not wait for this one.
    await sql.releaseRequest(deps.database, payment.intent_id);
    throw error;
  });
  const { intent_id: intentId, config_id: configId, station_id: stationId, organization_id: organizationId } = payment;
  // A switch was set while the provider made the payment: this QR is not shown.
  const isStopped = "created" in answer && isSwitchOn(deps.switches.current(), { organizationId, stationId, configId });
  if (isStopped) await sql.keepProviderReference(deps.database, intentId, answer.created.providerReference);
  const shown = isStopped ? ({ failure: "provider_frozen", mayHaveTakenEffect: true } as const) : answer;
  const reply = await storeAnswer(deps, payment, shown);
  const outcome = reply.created ? "created" : reply.reason;
  const tookMs = Math.round(performance.now() - startedAtMs);
  deps.log.info({ intentId, configId, stationId, kind: config.kind, outcome, tookMs }, "a provider was asked");
  return reply;
}

async function answerOf(
  deps: ProvidersDeps,
  asked: { readonly config: ConfigRow; readonly payment: sql.PaymentRow; readonly callMs: number },
): Promise<Answer> {
  const { config, payment } = asked;
  try {
    const access = await accessOf(deps, config);
    // `AbortSignal.timeout` takes whole milliseconds only.
    const signal = AbortSignal.timeout(Math.ceil(asked.callMs));
    return { created: await deps.adapters[config.kind].createPayment(access, askedPaymentOf(deps, payment), signal) };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const { failure, mayHaveTakenEffect } = error;
    deps.log.warn({ configId: config.config_id, failure, err: error }, "a provider has made no payment");
    return { failure, mayHaveTakenEffect };
  }
}

/** Stores the answer and its tasks, unless an answer is stored already. Returns the stored answer. */
async function storeAnswer(deps: ProvidersDeps, payment: sql.PaymentRow, answer: Answer): Promise<Reply> {
  const { intent_id: intentId } = payment;
  const stored = await deps.database.begin(async (tx) => {
    if ("created" in answer) {
      if (await sql.markReady(tx, intentId, answer.created)) {
        await moveUntakenTask(tx, { intentId, kind: "poll", dueInMs: PROVIDER_LIMITS.firstPollMs });
      } else {
        await sql.keepProviderReference(tx, intentId, answer.created.providerReference);
      }
    } else if (await sql.markFailed(tx, intentId, answer.failure)) {
      await dropPoll(tx, { intentId, outcome: answer.failure });
      // The provider may have made the payment, and a guest must not be able to pay it.
      if (answer.mayHaveTakenEffect) await insertTask(tx, { intentId, kind: "withdraw", dueInMs: 0 });
    }
    const found = await sql.findPayment(tx, intentId);
    // The cancellation may have reached the provider before the payment did.
    const isLate = "created" in answer && found !== undefined && found.withdrawn_at !== null;
    if (isLate) await armTask(tx, { intentId, kind: "withdraw", detail: {}, dueInMs: 0 });
    return found;
  });
  if (stored === undefined) throw new Error("A registered payment is missing.");
  return replyOf(stored);
}

function replyOf(payment: sql.PaymentRow): Reply {
  const { status, qr_payload: qrPayload, provider_reference: providerReference, failure } = payment;
  if (status === "ready") return { created: true, qrPayload, providerReference };
  return { created: false, reason: failure ?? "provider_unavailable" };
}

/**
 * Stores that the intent has ended unpaid, and replies then; a task cancels the payment at the provider. Idempotent.
 * Stores it also when no payment was requested yet, so that a later request is refused.
 */
export const withdrawProviderPayment: Handler<ProvidersDeps, typeof bus.withdrawProviderPayment> = async (
  deps,
  { intentId },
) => {
  const task = await deps.database.begin(async (tx) => {
    await sql.lockIntent(tx, intentId);
    if (!(await sql.markWithdrawn(tx, intentId))) {
      await sql.recordWithdrawal(tx, intentId);
      return undefined;
    }
    const { taskClaimMs: dueInMs } = PROVIDER_LIMITS;
    const withdrawal = await insertTask(tx, { intentId, kind: "withdraw", dueInMs, isTaken: true });
    if (withdrawal !== undefined) return withdrawal;
    // The service has asked the provider to cancel already. A station whose clock is behind received the provider's end
    // before its intent ended. The end of the intent then made the outcome unknown, and the task clears it.
    const hasEnded = (await sql.findPayment(tx, intentId))?.ended_at instanceof Date;
    return hasEnded ? await armTask(tx, { intentId, kind: "clear", detail: {}, dueInMs }) : undefined;
  });
  if (task !== undefined) deps.tasks.start(task);
  return {};
};

/**
 * Whether a payment was confirmed before its deadline (design §2.7). An intent without a payment has no confirmation, and
 * only the host decides about its deadline.
 */
export const findRecordedConfirmation: Handler<
  Pick<ProvidersDeps, "database">,
  typeof bus.findRecordedConfirmation
> = async ({ database }, { intentId }) => {
  const found = await sql.findRecordedConfirmation(database, intentId);
  return { isOver: found?.is_over ?? true, providerReference: found?.provider_reference ?? null };
};

/** Crockford's base 32: no letter can be taken for a digit when a person reads it aloud. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** 120 random bits; an EMVCo reference label has at most 25 characters. */
const CHARACTERS = 24;

/** The service's reference of a payment; it cannot be guessed. */
export function newReference(): string {
  return Array.from(randomBytes(CHARACTERS), (byte) => ALPHABET[byte & 31]).join("");
}

/** The payment in the terms of an adapter. */
export function askedPaymentOf(deps: Pick<ProvidersDeps, "callbackUrl">, payment: sql.PaymentRow): AskedPayment {
  return {
    reference: payment.reference,
    amountMinor: payment.amount_minor,
    currency: payment.currency,
    orderDisplayNumber: payment.order_display_number,
    expiresAtMs: payment.expires_at.getTime(),
    callbackUrl: deps.callbackUrl(payment.config_id),
    providerReference: payment.provider_reference,
  };
}
