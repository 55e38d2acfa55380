/**
 * Asks a provider for a payment, once per intent. The row is written first, so that a callback that overtakes the answer
 * finds it; the row's first answer stands, and whoever asks in the meantime waits for it.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { KillSwitches } from "../../../machines/standing.ts";
import type { createProviderPayment } from "../../bus/messages/provider-payments.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { CreatedPayment } from "../adapters/adapter.ts";
import { ProviderError, type ProviderFailure } from "../adapters/provider-error.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { accessOf } from "../secrets/live-secrets.ts";
import { type ConfigRow, findConfig, findUsableConfig } from "../sql/configs.ts";
import * as payments from "../sql/payments.ts";
import { armTask, dropTask, insertTask, moveUntakenTask } from "../sql/tasks.ts";
import { askedPaymentOf } from "../tasks/ask-about-payment.ts";
import { newReference } from "./reference.ts";

type Request = RequestOf<typeof createProviderPayment>;
type Reply = ReplyOf<typeof createProviderPayment>;
type Place = Pick<Request, "organizationId" | "stationId" | "configId">;

/**
 * Answers within `createTotalMs`. Never throws for what a provider does; refuses with `unavailable` when another's
 * question is still under way then, or while the kill switches are not known: a frozen provider is asked for nothing.
 */
export async function createPayment(deps: ProvidersDeps, request: Request): Promise<Reply> {
  const deadlineMs = Date.now() + PROVIDER_LIMITS.createTotalMs;
  const earlier = await payments.findPayment(deps.database, request.intentId);
  if (earlier !== undefined) return await waitForAnswer(deps, request, deadlineMs);
  const config = await findUsableConfig(deps.database, request);
  if (config === undefined) return { created: false, reason: "provider_not_configured" };
  if (isFrozen(deps, request)) return { created: false, reason: "provider_frozen" };
  const { callMs, createMarginMs, shortestCallMs } = PROVIDER_LIMITS;
  const latestStartMs = deadlineMs - createMarginMs - shortestCallMs;
  const release = await deps.creations.acquire(request.configId, Math.max(0, latestStartMs - Date.now()));
  // Nothing was asked, so no guest can have paid.
  if (release === undefined) return { created: false, reason: "provider_unavailable" };
  try {
    const payment = await registerPayment(deps, request, config);
    if (payment === undefined) return await waitForAnswer(deps, request, deadlineMs);
    const leftMs = deadlineMs - createMarginMs - Date.now();
    return await ask(deps, { config, payment, callMs: Math.max(1, Math.min(callMs, leftMs)) });
  } finally {
    release();
  }
}

/**
 * Whether a switch forbids new electronic money here: the provider's, the platform's, the organization's, the station's.
 * Whoever asked learns one reason for all; the station's own standing names the switch. Refuses with `unavailable` while
 * the switches are not known: whoever asks comes back for a while, and may meet a process that knows.
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
 * Writes the payment with its first look, which finds it also when whoever asks dies before there is an answer; undefined
 * when the intent has a payment already. Refuses with `conflict` what has ended before it was asked for.
 */
async function registerPayment(
  deps: ProvidersDeps,
  request: Request,
  config: ConfigRow,
): Promise<payments.PaymentRow | undefined> {
  const { intentId } = request;
  const adapter = deps.adapters[config.kind];
  const askMs = PROVIDER_LIMITS.callMs + PROVIDER_LIMITS.createMarginMs;
  const account = adapter.accountOf(config.settings);
  return await deps.database.begin(async (sql) => {
    await payments.lockIntent(sql, intentId);
    if (await payments.isWithdrawn(sql, intentId)) throw hasEnded();
    const payment = await payments.insertPayment(sql, {
      ...request,
      reference: newReference(),
      account,
      config,
      askMs,
    });
    if (payment !== undefined && adapter.answersQuestions)
      await insertTask(sql, { intentId, kind: "poll", dueInMs: askMs + PROVIDER_LIMITS.firstPollMs });
    return payment;
  });
}

const hasEnded = () =>
  new RefusedError({ code: "conflict", detail: "This collection has ended; no provider is asked." });

/**
 * A station whose log has lost a collection may create it again under the same id, of an order that has changed since. The guest
 * must not be shown the QR of the lost one.
 */
function isOfSameTerms(payment: payments.PaymentRow, request: Request): boolean {
  return (
    payment.station_id === request.stationId &&
    payment.config_id === request.configId &&
    payment.amount_minor === request.amountMinor &&
    payment.currency === request.currency
  );
}

const hasOtherTerms = () =>
  new RefusedError({ code: "conflict", detail: "This collection was asked of its provider on other terms." });

/** Another has asked. If they are gone without an answer, the same question is asked again, with the same reference. */
async function waitForAnswer(deps: ProvidersDeps, request: Request, deadlineMs: number): Promise<Reply> {
  for (;;) {
    const payment = await payments.findPayment(deps.database, request.intentId);
    if (payment === undefined) throw new Error("A payment that was asked for has vanished.");
    if (!isOfSameTerms(payment, request)) throw hasOtherTerms();
    if (payment.status !== "asked") return replyOf(payment);
    // What the provider may have made is withdrawn by its task; asked once more, it would be made again.
    if (payment.withdrawn_at !== null) throw hasEnded();
    if (Date.now() + PROVIDER_LIMITS.answerLookMs >= deadlineMs) {
      // Somebody else is just asking and may still get an answer; whoever waits comes back for it.
      if (payment.asked_until.getTime() > deps.bus.clock.nowMs()) throw new RefusedError({ code: "unavailable" });
      return await settleAnswer(deps, payment, { failure: "provider_timed_out", mayHaveTakenEffect: true });
    }
    const reply = await takeOver(deps, request, deadlineMs);
    if (reply !== undefined) return reply;
    await delay(PROVIDER_LIMITS.answerLookMs);
  }
}

/** Asks again when whoever asked has not answered within their time, and there is time enough for a call. */
async function takeOver(deps: ProvidersDeps, request: Request, deadlineMs: number): Promise<Reply | undefined> {
  const callMs = Math.min(PROVIDER_LIMITS.callMs, deadlineMs - Date.now() - PROVIDER_LIMITS.createMarginMs);
  if (callMs < PROVIDER_LIMITS.shortestCallMs) return undefined;
  const isForbidden = isFrozen(deps, request);
  const payment = await payments.takeOverQuestion(
    deps.database,
    request.intentId,
    callMs + PROVIDER_LIMITS.createMarginMs,
  );
  const config = payment === undefined ? undefined : await findConfig(deps.database, request);
  if (payment === undefined || config === undefined) return undefined;
  // Whoever asked before may have been heard, so what the provider may have made is withdrawn.
  if (isForbidden) return await settleAnswer(deps, payment, { failure: "provider_frozen", mayHaveTakenEffect: true });
  return await ask(deps, { config, payment, callMs });
}

type Answer =
  | { readonly created: CreatedPayment }
  | { readonly failure: ProviderFailure | "provider_frozen"; readonly mayHaveTakenEffect: boolean };

async function ask(
  deps: ProvidersDeps,
  asked: { readonly config: ConfigRow; readonly payment: payments.PaymentRow; readonly callMs: number },
): Promise<Reply> {
  const { config, payment } = asked;
  const startedAtMs = performance.now();
  const answer = await answerOf(deps, asked).catch(async (error: unknown) => {
    // It was not the provider: whoever is asked next need not wait for this one.
    await payments.giveUpQuestion(deps.database, payment.intent_id);
    throw error;
  });
  const { intent_id: intentId, config_id: configId, station_id: stationId, organization_id: organizationId } = payment;
  // A switch was thrown while the provider made the payment: nobody is shown this QR.
  const isStopped = "created" in answer && isSwitchOn(deps.switches.current(), { organizationId, stationId, configId });
  if (isStopped) await payments.keepProviderReference(deps.database, intentId, answer.created.providerReference);
  const standing = isStopped ? ({ failure: "provider_frozen", mayHaveTakenEffect: true } as const) : answer;
  const reply = await settleAnswer(deps, payment, standing);
  const outcome = reply.created ? "created" : reply.reason;
  const tookMs = Math.round(performance.now() - startedAtMs);
  deps.log.info({ intentId, configId, stationId, kind: config.kind, outcome, tookMs }, "a provider was asked");
  return reply;
}

async function answerOf(
  deps: ProvidersDeps,
  asked: { readonly config: ConfigRow; readonly payment: payments.PaymentRow; readonly callMs: number },
): Promise<Answer> {
  const { config, payment } = asked;
  try {
    const access = await accessOf(deps, config);
    const signal = AbortSignal.timeout(asked.callMs);
    return { created: await deps.adapters[config.kind].createPayment(access, askedPaymentOf(deps, payment), signal) };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const { failure, mayHaveTakenEffect } = error;
    deps.log.warn({ configId: config.config_id, failure, err: error }, "a provider has made no payment");
    return { failure, mayHaveTakenEffect };
  }
}

/** Writes the answer unless there is one already, with what must follow from it; returns the one that stands. */
async function settleAnswer(deps: ProvidersDeps, payment: payments.PaymentRow, answer: Answer): Promise<Reply> {
  const { intent_id: intentId } = payment;
  const standing = await deps.database.begin(async (sql) => {
    if ("created" in answer) {
      if (await payments.markReady(sql, intentId, answer.created)) {
        await moveUntakenTask(sql, { intentId, kind: "poll", dueInMs: PROVIDER_LIMITS.firstPollMs });
      } else {
        await payments.keepProviderReference(sql, intentId, answer.created.providerReference);
      }
    } else if (await payments.markFailed(sql, intentId, answer.failure)) {
      await dropTask(sql, { intentId, kind: "poll", outcome: answer.failure });
      // The provider may have made the payment all the same, and a guest must not be able to pay it.
      if (answer.mayHaveTakenEffect) await insertTask(sql, { intentId, kind: "withdraw", dueInMs: 0 });
    }
    const found = await payments.findPayment(sql, intentId);
    // The cancellation may have come to the provider before the payment did.
    const isLate = "created" in answer && found !== undefined && found.withdrawn_at !== null;
    if (isLate) await armTask(sql, { intentId, kind: "withdraw", detail: {}, dueInMs: 0 });
    return found;
  });
  if (standing === undefined) throw new Error("A payment that was asked for has vanished.");
  return replyOf(standing);
}

function replyOf(payment: payments.PaymentRow): Reply {
  const { status, qr_payload: qrPayload, provider_reference: providerReference, failure } = payment;
  if (status === "ready") return { created: true, qrPayload, providerReference };
  return { created: false, reason: failure ?? "provider_unavailable" };
}
