/** Telling a station what a provider said. The command id is the same in each attempt, so it takes effect once. */
import { z } from "zod";
import { PROVIDER_DECLINES } from "../../../machines/payment-intent.ts";
import type { RequestedCommand, StationResponse } from "../../bus/messages/station.ts";
import { askStation } from "../../bus/station-client.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { PaymentRow } from "../sql/payments.ts";
import { insertTask, type Task, type TaskKind } from "../sql/tasks.ts";
import type { TaskResult } from "./task-result.ts";

/** Throws when the station cannot be reached; then the task is tried again. */
export async function tellStation(
  deps: Pick<ProvidersDeps, "bus">,
  payment: PaymentRow,
  about: { readonly kind: TaskKind; readonly command: RequestedCommand },
): Promise<StationResponse> {
  const { station_id: stationId, intent_id: intentId, config_id: configId } = payment;
  const request = {
    commandId: `provider:${about.kind}:${intentId}`,
    actor: { kind: "provider", id: configId } as const,
    command: about.command,
  };
  return await askStation(deps.bus.nc, stationId, request, { timeoutMs: PROVIDER_LIMITS.stationAttemptMs });
}

const failDetail = z.object({ reason: z.enum(PROVIDER_DECLINES) });

/**
 * The buyer's payment has come to nothing. A station that refuses has its money, or has ended the intent already; then
 * this was the word that no money moved.
 */
export async function failAtStation(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { reason } = failDetail.parse(task.detail);
  const command = { type: "provider_failed", intentId: payment.intent_id, reason } as const;
  const { reply } = await tellStation(deps, payment, { kind: "fail", command });
  if (reply.ok) return { outcome: reason };
  const hasEndedUnpaid = reply.status === "cancelled" || reply.status === "expired";
  if (hasEndedUnpaid) await insertTask(deps.database, { intentId: payment.intent_id, kind: "clear", dueInMs: 0 });
  return { outcome: reply.code };
}

/** The provider says for certain that no money moved and none will. */
export async function clearAtStation(deps: ProvidersDeps, _task: Task, payment: PaymentRow): Promise<TaskResult> {
  const command = { type: "provider_cleared", intentId: payment.intent_id } as const;
  const { reply } = await tellStation(deps, payment, { kind: "clear", command });
  return { outcome: reply.ok ? "cleared" : reply.code };
}
