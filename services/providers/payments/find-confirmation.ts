/** Whether a payment was confirmed before its deadline (design §2.7). */
import type { findRecordedConfirmation } from "../../bus/messages/provider-payments.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import type { ProvidersDeps } from "../deps.ts";
import { findConfirmationInTime } from "../sql/payments.ts";

/** An intent that was never asked for has no confirmation, and its deadline is the host's alone. */
export async function findConfirmation(
  { database }: Pick<ProvidersDeps, "database">,
  { intentId }: RequestOf<typeof findRecordedConfirmation>,
): Promise<ReplyOf<typeof findRecordedConfirmation>> {
  const found = await findConfirmationInTime(database, intentId);
  return { isOver: found?.is_over ?? true, providerReference: found?.provider_reference ?? null };
}
