/** Cancelling at the provider what will not be collected any more. Retried, because a guest might still pay it. */
import { ProviderError } from "../adapters/provider-error.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { keepEnd } from "../sql/payments.ts";
import { armTask, dropTask, type Task } from "../sql/tasks.ts";
import { type AboutPayment, questionAbout, takeFoundMoney } from "./ask-about-payment.ts";
import { backOffMs } from "./back-off.ts";
import type { TaskResult } from "./task-result.ts";

export async function withdrawAtProvider(deps: ProvidersDeps, task: Task, about: AboutPayment): Promise<TaskResult> {
  const { payment, config } = about;
  const { intent_id: intentId, config_id: configId, assertions } = payment;
  if (payment.paid_reference !== null) return { outcome: "paid" };
  const { access, asked, signal } = await questionAbout(deps, about);
  try {
    const answer = await deps.adapters[config.kind].cancel(access, asked, signal);
    switch (answer.status) {
      case "cancelled": {
        const isKept = await deps.database.begin(async (sql) => {
          if (!(await keepEnd(sql, { intentId, assertions }))) return false;
          await dropTask(sql, { intentId, kind: "poll", outcome: "cancelled" });
          await armTask(sql, { intentId, kind: "clear", detail: {}, dueInMs: 0 });
          return true;
        });
        // Money has come since it was asked, so that this answer is older.
        return isKept ? { outcome: "cancelled" } : again(deps, task);
      }
      case "paid":
        return { outcome: await takeFoundMoney(deps, about, { money: answer.money, by: "cancellation" }) };
      case "in_progress":
        return again(deps, task);
      case "unknown":
        return { outcome: "unknown" };
    }
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    deps.log.warn({ intentId, configId, failure: error.failure, reason: error.message }, "a cancellation has failed");
    return again(deps, task);
  }
}

function again({ bus }: ProvidersDeps, task: Task): TaskResult {
  if (bus.clock.nowMs() - task.createdAt.getTime() > PROVIDER_LIMITS.withdrawGiveUpMs) return { outcome: "given_up" };
  const { withdrawPauseMs: firstMs, longestWithdrawPauseMs: longestMs } = PROVIDER_LIMITS;
  return { retryInMs: backOffMs(task.attempts, { firstMs, longestMs }) };
}
