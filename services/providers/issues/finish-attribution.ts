/** Asks the payment seam what an attribution has written down, and writes down what it says. May be done again at any time. */
import type { SettlementRefusal } from "../../../machines/station/command.ts";
import type { OrderSnapshot } from "../../../machines/station/state.ts";
import { moneyKey, prepareIntent, settleIntent } from "../../bus/messages/intents.ts";
import { call } from "../../bus/operation.ts";
import { insertOutbox, stationKey } from "../../db/outbox.ts";
import type { Transaction } from "../../db/pool.ts";
import type { ProvidersDeps } from "../deps.ts";
import { recordAttribution } from "../sql/events.ts";
import { clearAttribution, type IssueKey, type IssueRow, lockIssue, resolveIssue } from "../sql/issues.ts";
import type { KnownTask } from "../tasks/task-runner.ts";
import { holdMoneyOf } from "./free-money.ts";
import { resumeEnd } from "./resume-end.ts";

export interface Finished {
  readonly issue: IssueRow;
  /** The seam's, when it has refused; the issue is open again then. */
  readonly refusal: SettlementRefusal | undefined;
}

/** Throws `UnavailableError` when the seam does not answer: the attribution stays and is asked again. */
export async function finishAttribution(deps: ProvidersDeps, key: IssueKey): Promise<Finished> {
  const asked = await deps.database.begin((sql) => lockIssue(sql, key));
  if (asked === undefined) throw new Error("An issue has vanished.");
  const { attribution } = asked;
  if (attribution === null) return { issue: asked, refusal: undefined };
  const { reason: _reason, by, ...question } = attribution;
  const money = moneyKey({ configId: asked.config_id, name: asked.money_key });
  const request = { ...question, route: "dynamic_qr", attestedBy: by.userId, moneyKey: money } as const;
  const answer = await call(deps.bus.nc, settleIntent, request);
  const { stationId, orderId } = attribution;
  // Order truth as it is now that the seam has spoken; the intent id that comes with it stays unused.
  const { order } = await call(deps.bus.nc, prepareIntent, { stationId, orderId });
  const { issueId } = key;
  let task: KnownTask | undefined;
  const finished = await deps.database.begin(async (sql): Promise<Finished> => {
    await holdMoneyOf(sql, asked);
    const issue = await lockIssue(sql, key);
    if (issue === undefined) throw new Error("An issue has vanished.");
    // Another has asked the same and was faster.
    if (issue.attribution?.intentId !== attribution.intentId) return { issue, refusal: undefined };
    if (!answer.settled) {
      await clearAttribution(sql, issueId);
      return { issue: { ...issue, attribution: null }, refusal: answer.code };
    }
    const { transactionId } = answer;
    const { reason } = attribution;
    const resolution = { status: "attributed", by: by.userId, reason, orderId, transactionId } as const;
    const resolved = await resolveIssue(sql, issueId, resolution);
    task = await resumeEnd(sql, deps, resolved);
    await recordAttribution(sql, resolved, attribution);
    await tellOrder(sql, stationId, order);
    return { issue: resolved, refusal: undefined };
  });
  if (task !== undefined) deps.tasks.start(task);
  return finished;
}

/** The station learns that the order is paid, as it does of every change to one. Comes last: it takes the outbox's lock. */
async function tellOrder(sql: Transaction, stationId: number, order: OrderSnapshot): Promise<void> {
  await insertOutbox(sql, {
    key: stationKey(stationId),
    kind: "station_command",
    stationId,
    actor: { kind: "settlement", id: 0 },
    command: { type: "order_put", order },
  });
}
