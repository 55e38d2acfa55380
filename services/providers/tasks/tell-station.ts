/** Telling a station what a provider said. The command id is the same in each attempt, so it takes effect once. */
import { z } from "zod";
import { PROVIDER_DECLINES } from "../../../machines/payment-intent.ts";
import { confirmationId } from "../../../machines/station/deadlines.ts";
import type { Refusal } from "../../../machines/station/reply.ts";
import { ISSUE_KINDS } from "../../bus/messages/issues.ts";
import type { RequestedCommand, StationResponse } from "../../bus/messages/station-commands.ts";
import { askStation } from "../../bus/station-client.ts";
import { tellOfIssue } from "../callbacks/raise-issue.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { findOpenIssueOf } from "../sql/issues.ts";
import { findPayment, type PaymentRow } from "../sql/payments.ts";
import { armTask, findNewestNotice, noteInTask, type Task, type TaskKind } from "../sql/tasks.ts";
import type { TaskResult } from "./task-result.ts";

/** Throws when the station cannot be reached; then the task is tried again. */
export async function tellStation(
  deps: Pick<ProvidersDeps, "bus">,
  payment: PaymentRow,
  about: {
    readonly kind: TaskKind;
    readonly command: RequestedCommand;
    /** Tells commands of one kind apart that mean different things. */
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
  return await askStation(deps.bus.nc, stationId, request, { timeoutMs: PROVIDER_LIMITS.stationAttemptMs });
}

const failDetail = z.object({ reason: z.enum(PROVIDER_DECLINES) });

/**
 * The buyer's payment has come to nothing. A station that refuses has its money, or has ended the intent already; then
 * this was the word that no money moved. So it is where the station has forgotten the intent, whose doubt it may still know,
 * and where the intent has ended with a doubt now, because other money was asserted before.
 */
export async function failAtStation(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { reason } = failDetail.parse(task.detail);
  const command = { type: "provider_failed", intentId: payment.intent_id, reason } as const;
  const { reply } = await tellStation(deps, payment, { kind: "fail", command });
  const { intent_id: intentId, assertions } = payment;
  const mayBeInDoubt = reply.ok ? assertions > 0 : reply.code === "intent_unknown" || hasEndedUnpaid(reply);
  if (mayBeInDoubt) await armTask(deps.database, { intentId, kind: "clear", detail: {}, dueInMs: 0 });
  return { outcome: reply.ok ? reason : reply.code };
}

function hasEndedUnpaid({ status }: Refusal): boolean {
  return status === "cancelled" || status === "expired";
}

const telling = z.object({ issue: z.enum(ISSUE_KINDS), issueId: z.int(), nth: z.string() });
/** Issues of one intent, sent to its station one after another. */
const differDetail = z.object({ issues: z.array(telling) });

/** The provider asserts money that differs from what was registered: nobody may believe that no money has moved. */
export async function tellOfDifference(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { issues } = differDetail.parse(task.detail);
  let outcome = "told";
  for (const { issue, issueId, nth } of issues) {
    const command = { type: "provider_money_differs", intentId: payment.intent_id, issue, issueId } as const;
    const { reply } = await tellStation(deps, payment, { kind: "differ", command, nth });
    if (!reply.ok) outcome = reply.code;
  }
  return { outcome };
}

/** Noted before the station is asked to clear: a later attempt cannot know whether the station has done so. */
const ASKED_TO_CLEAR = { asked: true } as const;

/**
 * The provider says that no money moved and none will: the station clears the intent. It does not while an issue is open,
 * nor when the provider has asserted money since.
 *
 * A notice of money and the request to clear are not ordered, so the station may forget a notice that it got first. Where
 * that is possible, the newest notice is sent once more.
 */
export async function clearAtStation(deps: ProvidersDeps, task: Task, payment: PaymentRow): Promise<TaskResult> {
  const { intent_id: intentId } = payment;
  const before = await findPayment(deps.database, intentId);
  if (before === undefined) return { outcome: "superseded" };
  const obstacle = await obstacleToClearing(deps, before);
  if (obstacle !== undefined) {
    if ("asked" in task.detail) await notifyAgain(deps, before);
    return { outcome: obstacle };
  }
  // Another process has taken the task since, and does the rest.
  if (!(await noteInTask(deps.database, task, ASKED_TO_CLEAR))) return { outcome: "superseded" };
  const command = { type: "provider_cleared", intentId } as const;
  const { reply } = await tellStation(deps, payment, { kind: "clear", command });
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

/** Notifies the station once more of the newest issue, under another command id, so that it counts again. */
async function notifyAgain(deps: ProvidersDeps, payment: PaymentRow): Promise<void> {
  const { intent_id: intentId, assertions } = payment;
  const issue = (await findOpenIssueOf(deps.database, intentId)) ?? (await newestNotified(deps, intentId));
  if (issue === undefined) return;
  const again = await tellOfIssue(deps.database, { intentId, ...issue, since: `cleared${assertions}` });
  deps.tasks.start({ ...again, payment });
}

/** The issue of the newest notice. The notice of a closed issue is found here only. */
async function newestNotified({ database }: ProvidersDeps, intentId: number) {
  const newest = telling.safeParse(await findNewestNotice(database, intentId));
  return newest.success ? { kind: newest.data.issue, issueId: newest.data.issueId } : undefined;
}
