/** The intent has ended unpaid. Answers as soon as the wish is durable; the task does the rest. */
import type { withdrawProviderPayment } from "../../bus/messages/provider-payments.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { findPayment, keepWithdrawal, lockIntent, markWithdrawn } from "../sql/payments.ts";
import { armTask, insertTask } from "../sql/tasks.ts";

/**
 * Harmless when it is asked again. The wish is kept also when no payment was asked for yet: whoever does so afterwards is
 * refused.
 */
export async function withdrawPayment(
  deps: ProvidersDeps,
  { intentId }: RequestOf<typeof withdrawProviderPayment>,
): Promise<ReplyOf<typeof withdrawProviderPayment>> {
  const task = await deps.database.begin(async (sql) => {
    await lockIntent(sql, intentId);
    if (!(await markWithdrawn(sql, intentId))) {
      await keepWithdrawal(sql, intentId);
      return undefined;
    }
    const { taskClaimMs: dueInMs } = PROVIDER_LIMITS;
    const withdrawal = await insertTask(sql, { intentId, kind: "withdraw", dueInMs, isTaken: true });
    if (withdrawal !== undefined) return withdrawal;
    // The provider has been asked already. A station whose clock is behind heard its word before the intent had ended, which
    // is when the doubt began.
    const hasEnded = (await findPayment(sql, intentId))?.ended_at instanceof Date;
    return hasEnded ? await armTask(sql, { intentId, kind: "clear", detail: {}, dueInMs }) : undefined;
  });
  if (task !== undefined) deps.tasks.start(task);
  return {};
}
