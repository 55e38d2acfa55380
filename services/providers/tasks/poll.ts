/**
 * The status poll: finds what a lost callback would have told. It runs until the deadline and once after it, also when
 * what it finds does not fit; a payment that is still open then is cancelled at the provider, also when nobody has said
 * that the intent has ended.
 */
import { ProviderError } from "../adapters/provider-error.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { keepEnd } from "../sql/payments.ts";
import { insertTask, type Task } from "../sql/tasks.ts";
import { type AboutPayment, questionAbout, takeFoundMoney } from "./ask-about-payment.ts";
import type { TaskResult } from "./task-result.ts";

export async function pollProvider(deps: ProvidersDeps, task: Task, about: AboutPayment): Promise<TaskResult> {
  const { payment, config } = about;
  if (payment.paid_reference !== null) return { outcome: "paid" };
  const adapter = deps.adapters[config.kind];
  const nowMs = (): number => deps.bus.clock.nowMs();
  const { access, asked, signal } = await questionAbout(deps, about);
  const lastAtMs = payment.expires_at.getTime() + PROVIDER_LIMITS.pollAfterDeadlineMs;
  try {
    const found = await adapter.lookUp(access, asked, signal);
    if (found.status === "paid") {
      const outcome = await takeFoundMoney(deps, about, { money: found.money, by: "poll" });
      // Money that does not fit is an issue; the right one may still be found while the collection goes on.
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

/** False when money has come since the provider was asked: its answer is older and ends nothing. */
async function end(deps: ProvidersDeps, { payment }: AboutPayment, reason: string): Promise<boolean> {
  const { intent_id: intentId, assertions } = payment;
  return await deps.database.begin(async (sql) => {
    const isKept = await keepEnd(sql, { intentId, assertions });
    if (isKept) await insertTask(sql, { intentId, kind: "fail", detail: { reason }, dueInMs: 0 });
    return isKept;
  });
}

/** Growing pauses up to the deadline; what would come after it is the one look that is made then. */
export function nextPollInMs(attempts: number, lastAtMs: number, nowMs: number): number {
  const { firstPollMs, pollGrowth, longestPollPauseMs, pollAfterDeadlineMs } = PROVIDER_LIMITS;
  const pauseMs = Math.min(firstPollMs * pollGrowth ** Math.min(attempts, 30), longestPollPauseMs);
  const lastInMs = Math.max(0, lastAtMs - nowMs);
  return pauseMs > lastInMs - pollAfterDeadlineMs ? lastInMs : pauseMs;
}
