/**
 * What each kind of task does. `poll` and `withdraw` call the provider. `confirm`, `fail`, `clear` and `differ` send a
 * command to the station. The command has the same id in each attempt, so that it takes effect once. Any task may run
 * twice, after a crash.
 *
 * Calls asserted-payments.ts, issue-recording.ts and payments.ts; called by the task runner only, which service.ts
 * joins with `runTask`.
 */

import { z } from "zod";
import { PROVIDER_DECLINES } from "../../machines/payment-intent.ts";
import { confirmationId } from "../../machines/station/deadlines.ts";
import { type Refusal, SETTLEMENT_REFUSALS } from "../../machines/station/reply.ts";
import { moneyName } from "../bus/messages/intents.ts";
import { ISSUE_KINDS, type IssueEvidence, type IssueKind } from "../bus/messages/issues.ts";
import type { RequestedCommand, StationResponse } from "../bus/messages/station-commands.ts";
import { isStationUnknown, NotRestoredError } from "../bus/refusals.ts";
import { askStation } from "../bus/station-client.ts";
import { announceIssues } from "../issues/recording.ts";
import { type AskedPayment, type AssertedPayment, type ProviderAccess, ProviderError } from "./adapters/adapter.ts";
import { decidePayment, lockAssertedPayment } from "./asserted-payments.ts";
import type { ProvidersDeps } from "./deps.ts";
import { announceWritten, notifyOfIssue, placeOf, registeredOf } from "./issue-recording.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { countIssue } from "./metrics.ts";
import { askedPaymentOf } from "./payments.ts";
import { accessOf } from "./secrets.ts";
import { type ConfigRow, findConfigById } from "./sql/configs.ts";
import { findOpenIssueOf, insertIssue } from "./sql/issues.ts";
import { findPayment, hasSettled, type PaymentRow, recordEnd } from "./sql/payments.ts";
import { armTask, dropPoll, findNewestNotice, insertTask, noteInTask, type Task, type TaskKind } from "./sql/tasks.ts";
import { backOffMs, type KnownTask, type TaskResult } from "./task-runner.ts";

export async function runTask(deps: ProvidersDeps, task: KnownTask): Promise<TaskResult> {
  const payment = task.payment ?? (await findPayment(deps.database, task.intentId));
  if (payment === undefined) return { outcome: "no_payment" };
  switch (task.kind) {
    case "confirm":
      return await confirmAtStation(deps, task, payment);
    case "fail":
      return await failAtStation(deps, task, payment);
    case "clear":
      return await clearAtStation(deps, task, payment);
    case "differ":
      return await notifyStation(deps, task, payment);
    case "poll":
    case "withdraw": {
      const config = await findConfigById(deps.database, payment.config_id);
      if (config === undefined) return { outcome: "no_config" };
      return await (task.kind === "poll" ? pollProvider : withdrawAtProvider)(deps, task, { payment, config });
    }
  }
}

/**
 * Finds what a lost callback would have reported. Polls until the deadline and once after it, also after money that
 * does not fit. A payment that is still open then is cancelled at the provider, also when no end of the intent was
 * reported.
 */
async function pollProvider(deps: ProvidersDeps, task: Task, about: AboutPayment): Promise<TaskResult> {
  const { payment, config } = about;
  if (payment.paid_reference !== null) return { outcome: "paid" };
  const adapter = deps.adapters[config.kind];
  const nowMs = (): number => deps.bus.clock.nowMs();
  const { access, asked, signal } = await callAbout(deps, about);
  const lastAtMs = payment.expires_at.getTime() + PROVIDER_LIMITS.pollAfterDeadlineMs;
  try {
    const found = await adapter.lookUp(access, asked, signal);
    if (found.status === "paid") {
      const outcome = await takeFoundPayment(deps, about, { money: found.money, by: "poll" });
      // Money that does not fit is an issue; a later poll may still find the right one.
      const isTaken = outcome === "confirmed" || outcome === "known";
      const isLast = nowMs() >= lastAtMs || payment.withdrawn_at !== null;
      return isTaken || isLast ? { outcome } : { retryInMs: nextPollInMs(task.attempts, lastAtMs, nowMs()) };
    }
    if (found.status === "ended") {
      if (await end(deps, about, found.reason)) return { outcome: found.reason };
      return { retryInMs: nextPollInMs(task.attempts, lastAtMs, nowMs()) };
    }
    if (nowMs() < lastAtMs) return { retryInMs: nextPollInMs(task.attempts, lastAtMs, nowMs()) };
    await insertTask(deps.database, { intentId: payment.intent_id, kind: "withdraw", dueInMs: 0 });
    return { outcome: found.status };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const { intent_id: intentId, config_id: configId } = payment;
    deps.log.warn({ intentId, configId, failure: error.failure, reason: error.message }, "a provider cannot be asked");
    if (nowMs() < lastAtMs) return { retryInMs: nextPollInMs(task.attempts, lastAtMs, nowMs()) };
    if (nowMs() < lastAtMs + PROVIDER_LIMITS.pollGiveUpMs) return { retryInMs: PROVIDER_LIMITS.longestPollPauseMs };
    return { outcome: "given_up" };
  }
}

/** False when the provider has asserted money since the call: its answer is older and ends nothing. */
async function end(deps: ProvidersDeps, { payment }: AboutPayment, reason: string): Promise<boolean> {
  const { intent_id: intentId, assertions } = payment;
  return await deps.database.begin(async (tx) => {
    const isKept = await recordEnd(tx, { intentId, assertions });
    if (isKept) await insertTask(tx, { intentId, kind: "fail", detail: { reason }, dueInMs: 0 });
    return isKept;
  });
}

/** Growing pauses up to the deadline; after it follows one last poll. */
export function nextPollInMs(attempts: number, lastAtMs: number, nowMs: number): number {
  const { firstPollMs, pollGrowth, longestPollPauseMs, pollAfterDeadlineMs } = PROVIDER_LIMITS;
  const pauseMs = Math.min(firstPollMs * pollGrowth ** Math.min(attempts, 30), longestPollPauseMs);
  const lastInMs = Math.max(0, lastAtMs - nowMs);
  return pauseMs > lastInMs - pollAfterDeadlineMs ? lastInMs : pauseMs;
}

/** Cancels a payment whose collection has ended. Repeats the attempt, because a guest might still pay. */
async function withdrawAtProvider(deps: ProvidersDeps, task: Task, about: AboutPayment): Promise<TaskResult> {
  const { payment, config } = about;
  const { intent_id: intentId, config_id: configId, assertions } = payment;
  if (payment.paid_reference !== null) return { outcome: "paid" };
  const { access, asked, signal } = await callAbout(deps, about);
  try {
    const answer = await deps.adapters[config.kind].cancel(access, asked, signal);
    switch (answer.status) {
      case "cancelled": {
        const isKept = await deps.database.begin(async (tx) => {
          if (!(await recordEnd(tx, { intentId, assertions }))) return false;
          await dropPoll(tx, { intentId, outcome: "cancelled" });
          await armTask(tx, { intentId, kind: "clear", detail: {}, dueInMs: 0 });
          return true;
        });
        // The provider has asserted money since, so this answer is out of date.
        return isKept ? { outcome: "cancelled" } : withdrawAgain(deps, task);
      }
      case "paid":
        return { outcome: await takeFoundPayment(deps, about, { money: answer.money, by: "cancellation" }) };
      case "in_progress":
        return withdrawAgain(deps, task);
      case "unknown":
        return { outcome: "unknown" };
    }
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    deps.log.warn({ intentId, configId, failure: error.failure, reason: error.message }, "a cancellation has failed");
    return withdrawAgain(deps, task);
  }
}

function withdrawAgain({ bus }: ProvidersDeps, task: Task): TaskResult {
  if (bus.clock.nowMs() - task.createdAt.getTime() > PROVIDER_LIMITS.withdrawGiveUpMs) return { outcome: "given_up" };
  const { withdrawPauseMs: firstMs, longestWithdrawPauseMs: longestMs } = PROVIDER_LIMITS;
  return { retryInMs: backOffMs(task.attempts, { firstMs, longestMs }) };
}

interface AboutPayment {
  readonly payment: PaymentRow;
  readonly config: ConfigRow;
}

/** What a call of an adapter needs, with its deadline. */
async function callAbout(
  deps: ProvidersDeps,
  { payment, config }: AboutPayment,
): Promise<{ readonly access: ProviderAccess; readonly asked: AskedPayment; readonly signal: AbortSignal }> {
  return {
    access: await accessOf(deps, config),
    asked: askedPaymentOf(deps, payment),
    signal: AbortSignal.timeout(PROVIDER_LIMITS.callMs),
  };
}

/** Handles a payment that a call has found like one from a callback; the order of the two does not matter. */
async function takeFoundPayment(
  deps: ProvidersDeps,
  { payment, config }: AboutPayment,
  found: { readonly money: AssertedPayment; readonly by: string },
): Promise<string> {
  const { config_id: configId, organization_id: organizationId } = config;
  const source = { configId, organizationId, eventKey: `${found.by}:${payment.intent_id}`, learnedFrom: found.by };
  const { outcome, task, issueId } = await deps.database.begin(async (tx) => {
    const held = await lockAssertedPayment(tx, source, found.money);
    const decision = await decidePayment(tx, { source, money: found.money, mayPay: true }, held);
    const written = await decision.write();
    await announceWritten(tx, organizationId, written);
    return { outcome: decision.outcome, ...written };
  });
  deps.log.info(
    { intentId: payment.intent_id, configId, outcome, issueId, by: found.by },
    "a call to the provider has found a payment",
  );
  countIssue(deps.metrics, outcome, issueId);
  if (task !== undefined) deps.tasks.start(task);
  return outcome;
}

const detailSchema = z.object({ providerReference: z.string() });

/**
 * Reports to the station that the money has moved, until the station has answered. A final refusal becomes an issue.
 */
async function confirmAtStation(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { providerReference } = detailSchema.parse(task.detail);
  const { intent_id: intentId } = payment;
  const command = { type: "provider_confirm", intentId, providerReference } as const;
  const { reply } = await sendToStation(deps, payment, { kind: "confirm", command });
  // The money may have settled the intent although the log has lost that, and with it perhaps the intent.
  if (reply.ok || (await hasSettled(deps.database, { intentId, providerReference }))) return { outcome: "settled" };
  if (mayChange(deps, reply, task)) {
    const { stationPauseMs: firstMs, longestStationPauseMs: longestMs } = PROVIDER_LIMITS;
    return { retryInMs: backOffMs(task.attempts, { firstMs, longestMs }) };
  }
  const kind = issueOf(reply);
  const raised = await deps.database.begin(async (tx) => {
    const { organization_id: organizationId } = payment;
    const issue = await insertIssue(tx, {
      organizationId,
      configId: payment.config_id,
      kind,
      moneyName: moneyName(providerReference, `intent:${intentId}`),
      payment: placeOf(payment),
      amountMinor: payment.amount_minor,
      currency: payment.currency,
      providerReference,
      assertedAccount: payment.account,
      evidence: {
        asserted: assertedOf(payment, providerReference),
        registered: registeredOf(payment),
        station: { code: reply.code, status: reply.status ?? null },
      },
    });
    if (issue === undefined) return undefined;
    const { issueId: raisedId } = issue;
    const notice = await notifyOfIssue(tx, { intentId, kind, issueId: raisedId });
    await announceIssues(tx, "issues_opened", [{ organization_id: organizationId, issue_id: raisedId }]);
    return { issueId: raisedId, task: notice };
  });
  if (raised !== undefined) deps.tasks.start({ ...raised.task, payment });
  const issueId = raised?.issueId;
  countIssue(deps.metrics, kind, issueId);
  deps.log.warn({ intentId, kind, issueId, stationCode: reply.code, status: reply.status }, "money does not fit");
  return { outcome: kind };
}

/** The assertion equals the registered payment, because other money is never confirmed. */
function assertedOf(payment: PaymentRow, providerReference: string): NonNullable<IssueEvidence["asserted"]> {
  const { reference, account, amount_minor: amountMinor, currency } = payment;
  return { reference, providerReference, account, amountMinor, currency };
}

/** Whether a later attempt may succeed: the station may not know the intent yet, or may be settling at this moment. */
function mayChange({ bus }: ProvidersDeps, refusal: Refusal, task: Task): boolean {
  if (refusal.code === "settlement_in_progress") return true;
  const ageMs = bus.clock.nowMs() - task.createdAt.getTime();
  return refusal.code === "intent_unknown" && ageMs < PROVIDER_LIMITS.intentUnknownMs;
}

function issueOf(refusal: Refusal): IssueKind {
  // The money has paid another order, or a person has closed it, so it cannot settle this one.
  if (refusal.code === "money_already_used") return "duplicate_money";
  if ((SETTLEMENT_REFUSALS as readonly string[]).includes(refusal.code)) return "settlement_refused";
  return refusal.status === "succeeded" ? "duplicate_money" : "late_money";
}

/** Throws when the station cannot be reached, or the bus has lost it; the task is then repeated. */
async function sendToStation(
  deps: Pick<ProvidersDeps, "bus">,
  payment: PaymentRow,
  about: {
    readonly kind: TaskKind;
    readonly command: RequestedCommand;
    /** Part of the command id, for commands of one kind that mean different things. */
    readonly nth?: string | undefined;
  },
): Promise<StationResponse> {
  const { station_id: stationId, intent_id: intentId, config_id: configId } = payment;
  const nth = about.nth === undefined ? "" : `:${about.nth}`;
  const request = {
    commandId: about.kind === "confirm" ? confirmationId(intentId) : `provider:${about.kind}:${intentId}${nth}`,
    actor: { kind: "provider", id: configId } as const,
    command: about.command,
  };
  const response = await askStation(deps.bus.nc, stationId, request, { timeoutMs: PROVIDER_LIMITS.stationAttemptMs });
  if (isStationUnknown(response.reply)) throw new NotRestoredError();
  return response;
}

const failDetail = z.object({ reason: z.enum(PROVIDER_DECLINES) });

/**
 * Reports to the station that the buyer's payment has failed. A `clear` task follows in three cases, because the
 * outcome may be unknown. The intent has ended unpaid, so the station refuses. The station no longer has the intent. Or
 * the provider has asserted other money before.
 */
async function failAtStation(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { reason } = failDetail.parse(task.detail);
  const command = { type: "provider_failed", intentId: payment.intent_id, reason } as const;
  const { reply } = await sendToStation(deps, payment, { kind: "fail", command });
  const { intent_id: intentId, assertions } = payment;
  const mayBeUnknown = reply.ok ? assertions > 0 : reply.code === "intent_unknown" || hasEndedUnpaid(reply);
  if (mayBeUnknown) await armTask(deps.database, { intentId, kind: "clear", detail: {}, dueInMs: 0 });
  return { outcome: reply.ok ? reason : reply.code };
}

function hasEndedUnpaid({ status }: Refusal): boolean {
  return status === "cancelled" || status === "expired";
}

const noticeSchema = z.object({ issue: z.enum(ISSUE_KINDS), issueId: z.int(), nth: z.string() });
/** The notices of one intent, in order. */
const differDetail = z.object({ issues: z.array(noticeSchema) });

/**
 * Notifies the station that the provider asserts money other than the registered payment: the intent's outcome is
 * unknown.
 */
async function notifyStation(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { issues } = differDetail.parse(task.detail);
  let outcome = "notified";
  for (const { issue, issueId, nth } of issues) {
    const command = { type: "provider_money_differs", intentId: payment.intent_id, issue, issueId } as const;
    const { reply } = await sendToStation(deps, payment, { kind: "differ", command, nth });
    if (!reply.ok) outcome = reply.code;
  }
  return { outcome };
}

/** Stored before the request to clear: a later attempt cannot know whether the station has cleared the intent. */
const ASKED_TO_CLEAR = { asked: true } as const;

/**
 * Asks the station to clear the intent, because the provider reports that no money moved and none will. Does not ask
 * while an issue is open, or when the provider has asserted money since.
 *
 * A notice and the request to clear have no fixed order, so clearing may undo a notice that came first. Where that is
 * possible, the newest notice is sent again.
 */
async function clearAtStation(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { intent_id: intentId } = payment;
  const before = await findPayment(deps.database, intentId);
  if (before === undefined) return { outcome: "superseded" };
  const obstacle = await obstacleToClearing(deps, before);
  if (obstacle !== undefined) {
    if ("asked" in task.detail) await notifyAgain(deps, before);
    return { outcome: obstacle };
  }
  // Another process has taken the task and does the rest.
  if (!(await noteInTask(deps.database, task, ASKED_TO_CLEAR))) return { outcome: "superseded" };
  const command = { type: "provider_cleared", intentId } as const;
  const { reply } = await sendToStation(deps, payment, { kind: "clear", command });
  const after = await findPayment(deps.database, intentId);
  const hasNewMoney = after !== undefined && after.assertions !== before.assertions;
  if (hasNewMoney || (await findOpenIssueOf(deps.database, intentId)) !== undefined)
    await notifyAgain(deps, after ?? before);
  return { outcome: reply.ok ? "cleared" : reply.code };
}

/** Why the station must not clear the intent now, or undefined. */
async function obstacleToClearing(
  { database }: ProvidersDeps,
  { intent_id: intentId, ended_at: endedAt, paid_reference: paidReference }: PaymentRow,
): Promise<"superseded" | "issue_open" | undefined> {
  if (endedAt === null || paidReference !== null) return "superseded";
  return (await findOpenIssueOf(database, intentId)) === undefined ? undefined : "issue_open";
}

/** Notifies the station again of the newest issue, under another command id, so that it counts again. */
async function notifyAgain(deps: ProvidersDeps, payment: PaymentRow): Promise<void> {
  const { intent_id: intentId, assertions } = payment;
  const issue = (await findOpenIssueOf(deps.database, intentId)) ?? (await newestNotified(deps, intentId));
  if (issue === undefined) return;
  const notice = await notifyOfIssue(deps.database, { intentId, ...issue, since: `cleared${assertions}` });
  deps.tasks.start({ ...notice, payment });
}

/** The issue of the newest notice. The notice of a closed issue is found here only. */
async function newestNotified({ database }: ProvidersDeps, intentId: number) {
  const newest = noticeSchema.safeParse(await findNewestNotice(database, intentId));
  return newest.success ? { kind: newest.data.issue, issueId: newest.data.issueId } : undefined;
}
