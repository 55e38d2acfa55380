/**
 * The enumerations of the wire. Each is one named schema of the OpenAPI document, so that a generated client has one
 * type for it and the name stays the same when an operation is added.
 */
import { z } from "zod";
import { LEASE_LOSSES } from "../../machines/lease.ts";
import { type IntentStatus, REPORTED_OUTCOMES, ROUTES } from "../../machines/payment-intent.ts";
import { SERVING_TASK_STATUSES, TASK_LEGS } from "../../machines/serving-task.ts";
import { WITHDRAWAL_REASONS } from "../../machines/station/reply.ts";
import { ORDER_STATUSES } from "../../machines/station/state.ts";
import { CONSUMER_STATUSES } from "../../services/bus/messages/robotics.ts";
import { ERRORS, PUBLISHED_ERROR_CODES } from "./errors.ts";
import { DEVICE_SCOPES } from "./route.ts";

/** What each status of the wire means; a status without a meaning does not compile. */
const STATUS_MEANINGS: Readonly<Record<IntentStatus, string>> = {
  created: "no device has fetched it yet, and no QR is there to scan",
  presented: "the device has it, or its QR is shown",
  processing: "there is evidence, or an attestation or a provider's confirmation is being settled",
  succeeded: "attested by the cashier or confirmed by the provider, and settled; the order is paid",
  cancelled:
    "ended by a cashier or, where `end_reason` says so, by the provider's side or because the order was paid by another way, voided or changed",
  expired: "ended by its deadline",
};
const INTENT_STATUSES = Object.keys(STATUS_MEANINGS) as readonly IntentStatus[];

export const intentStatusSchema = z.enum(INTENT_STATUSES).meta({
  id: "IntentStatus",
  description: INTENT_STATUSES.map((status) => `\`${status}\`: ${STATUS_MEANINGS[status]}.`).join(" "),
});
export const shownIntentStatusSchema = z
  .enum(["", ...INTENT_STATUSES])
  .meta({ id: "ShownIntentStatus", description: "As `IntentStatus`; empty while no intent is shown." });
export const displayScreenSchema = z.enum(["idle", "total", "qr", "paid"]).meta({ id: "DisplayScreen" });
export const outcomeSchema = z.enum(REPORTED_OUTCOMES).meta({
  id: "Outcome",
  description:
    "`reported_success`: the payment application returned an approval. `reported_declined`: it returned a decline. `reported_cancelled`: the guest or the cashier abandoned it there. `reported_unknown`: it returned nothing usable, or the wait timed out.",
});
export const paymentRouteSchema = z.enum(ROUTES).meta({ id: "PaymentRoute" });
export const orderStatusSchema = z.enum(ORDER_STATUSES).meta({ id: "OrderStatus" });

export const deviceScopeSchema = z.enum(DEVICE_SCOPES).meta({ id: "DeviceScope" });
export const withdrawalReasonSchema = z.enum(WITHDRAWAL_REASONS).meta({
  id: "WithdrawalReason",
  description:
    "`no_companion`: the station has none. `device_offline`: the companion sends no heartbeat. `device_not_enrolled`: its enrollment code was not claimed. `capability_missing`: it lacks `handoff_present` or `outcome_report`. `provider_not_configured`: no payment provider serves the station. `provider_frozen`: it is frozen by a kill switch. The others as in `BlockedReason`.",
});
export const leaseLossSchema = z.enum(LEASE_LOSSES).meta({
  id: "LeaseLoss",
  description: "`taken_over`: another cashier took the station over. `broken`: the owner freed it.",
});

export const moneyMovedSchema = z
  .enum(["no", "yes", "maybe"])
  .meta({ id: "MoneyMoved", description: "`maybe` where only evidence says so." });

export const consumerStatusSchema = z.enum(CONSUMER_STATUSES).meta({ id: "ConsumerStatus" });
export const servingTaskStatusSchema = z.enum(SERVING_TASK_STATUSES).meta({ id: "ServingTaskStatus" });
export const servingTaskLegSchema = z
  .enum(TASK_LEGS)
  .meta({ id: "ServingTaskLeg", description: "Where from and where to." });

const yesOrNo = (value: boolean): string => (value ? "yes" : "no");
const ERROR_ROWS = PUBLISHED_ERROR_CODES.map((code) => {
  const { status, sentence, retryable, moneyMayHaveMoved } = ERRORS[code];
  return `| \`${code}\` | ${status} | ${yesOrNo(retryable)} | ${yesOrNo(moneyMayHaveMoved)} | ${sentence} |`;
});
/** The document explains the codes here, and not in its introduction: a reader wants the operations first. */
export const errorCodeSchema = z.enum(PUBLISHED_ERROR_CODES).meta({
  id: "ErrorCode",
  description: [
    "A stable word for a program; the list is closed. `x-error-codes` of the document has the same table for programs.",
    "",
    "| code | status | retry safe | money may have moved | meaning |",
    "|---|---|---|---|---|",
    ...ERROR_ROWS,
  ].join("\n"),
});
