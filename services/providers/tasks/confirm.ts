/**
 * The money is there: the station is told until it has answered. What it refuses becomes an issue, because the money
 * stays where it is.
 */
import { z } from "zod";
import { SETTLEMENT_REFUSALS } from "../../../machines/station/command.ts";
import type { Refusal } from "../../../machines/station/reply.ts";
import { moneyName } from "../../bus/messages/intents.ts";
import type { IssueEvidence } from "../../bus/messages/issues.ts";
import { placeOf, registeredOf, tellOfIssue } from "../callbacks/raise-issue.ts";
import type { ProvidersDeps } from "../deps.ts";
import { countIssue } from "../figures.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { type IssueKind, insertIssue } from "../sql/issues.ts";
import type { PaymentRow } from "../sql/payments.ts";
import type { Task } from "../sql/tasks.ts";
import { backOffMs } from "./back-off.ts";
import type { TaskResult } from "./task-result.ts";
import { tellStation } from "./tell-station.ts";

const detailSchema = z.object({ providerReference: z.string() });

export async function confirmAtStation(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { providerReference } = detailSchema.parse(task.detail);
  const { intent_id: intentId } = payment;
  const command = { type: "provider_confirm", intentId, providerReference } as const;
  const { reply } = await tellStation(deps, payment, { kind: "confirm", command });
  if (reply.ok) return { outcome: "settled" };
  if (mayChange(deps, reply, task)) {
    const { stationPauseMs: firstMs, longestStationPauseMs: longestMs } = PROVIDER_LIMITS;
    return { retryInMs: backOffMs(task.attempts, { firstMs, longestMs }) };
  }
  const kind = issueOf(reply);
  const told = await deps.database.begin(async (sql) => {
    const issueId = await insertIssue(sql, {
      organizationId: payment.organization_id,
      configId: payment.config_id,
      kind,
      moneyName: moneyName(providerReference, `intent:${intentId}`),
      payment: placeOf(payment),
      amountMinor: payment.amount_minor,
      currency: payment.currency,
      providerReference,
      saidAccount: payment.account,
      evidence: {
        asserted: assertedOf(payment, providerReference),
        registered: registeredOf(payment),
        station: { code: reply.code, status: reply.status ?? null },
      },
    });
    return issueId === undefined ? undefined : { issueId, task: await tellOfIssue(sql, { intentId, kind, issueId }) };
  });
  if (told !== undefined) deps.tasks.start({ ...told.task, payment });
  const issueId = told?.issueId;
  countIssue(deps.figures, kind, issueId);
  deps.log.warn({ intentId, kind, issueId, stationCode: reply.code, status: reply.status }, "money does not fit");
  return { outcome: kind };
}

/** Money is only confirmed when what the provider asserted is what was registered, so one tells the other. */
function assertedOf(payment: PaymentRow, providerReference: string): NonNullable<IssueEvidence["asserted"]> {
  const { reference, account, amount_minor: amountMinor, currency } = payment;
  return { reference, providerReference, account, amountMinor, currency };
}

/** Answers that say nothing about the money yet: a station that is not there yet, or is just settling. */
function mayChange({ bus }: ProvidersDeps, refusal: Refusal, task: Task): boolean {
  if (refusal.code === "settlement_in_progress" || refusal.code === "station_unknown") return true;
  const ageMs = bus.clock.nowMs() - task.createdAt.getTime();
  return refusal.code === "intent_unknown" && ageMs < PROVIDER_LIMITS.intentUnknownMs;
}

function issueOf(refusal: Refusal): IssueKind {
  // The money has paid another order, or a person has closed it, so nobody can settle this one with it.
  if (refusal.code === "money_already_used") return "duplicate_money";
  if ((SETTLEMENT_REFUSALS as readonly string[]).includes(refusal.code)) return "settlement_refused";
  return refusal.status === "succeeded" ? "duplicate_money" : "late_money";
}
