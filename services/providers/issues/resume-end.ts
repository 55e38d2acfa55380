/** What the station of an intent hears when an issue of it is resolved. */
import type { Transaction } from "../../db/pool.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { findConfigById } from "../sql/configs.ts";
import type { IssueRow } from "../sql/issues.ts";
import { lockPayment } from "../sql/payments.ts";
import { armTask, hasOpenTask } from "../sql/tasks.ts";
import type { KnownTask } from "../tasks/task-runner.ts";

/**
 * An end that the provider has said while the issue was open was kept from the station: it is told now, unless the task finds
 * another issue open, whose own end brings it again. The payment is held, so that an end that is said at this moment is seen
 * here, or finds the issue resolved. Where the intent
 * has ended and the provider has said nothing, the provider is asked, if it can be. Returns the task that does so, which the
 * caller starts when its transaction has committed. Comes before the trail is written, because it holds rows.
 */
export async function resumeEnd(
  sql: Transaction,
  { adapters }: Pick<ProvidersDeps, "adapters">,
  { intent_id: intentId }: Pick<IssueRow, "intent_id">,
): Promise<KnownTask | undefined> {
  if (intentId === null) return undefined;
  const payment = await lockPayment(sql, intentId);
  // Money that was confirmed is there, whatever became of it; only an end takes a doubt away.
  if (payment === undefined || payment.paid_reference !== null) return undefined;
  const claim = { intentId, detail: {}, dueInMs: PROVIDER_LIMITS.taskClaimMs };
  if (payment.ended_at !== null) return { ...(await armTask(sql, { ...claim, kind: "clear" })), payment };
  const config = await findConfigById(sql, payment.config_id);
  if (payment.withdrawn_at === null || config === undefined || !adapters[config.kind].answersQuestions)
    return undefined;
  if (await hasOpenTask(sql, { intentId, kind: "withdraw" })) return undefined;
  return { ...(await armTask(sql, { ...claim, kind: "withdraw" })), payment };
}
