/**
 * What operators decide about imports: the release of a held import, and the withdrawal of an import that is not refused. A
 * withdrawal is stored at once and carried out in one transaction, by this process or, if this process ends, by another one. If
 * the file is uploaded again, it is a new import with the same lines. The service finds earlier decisions about these lines by
 * fingerprint and evidence.
 */
import { personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/import-decisions.ts";
import type { Handler, RequestOf } from "../bus/operation.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { isLockTimeout } from "../db/lock-timeout.ts";
import type { Transaction } from "../db/pool.ts";
import { SYSTEM } from "../db/provider-audit-log.ts";
import { WorkStoppedError } from "../db/stoppable.ts";
import { announceIssues, recordSteps } from "../issues/recording.ts";
import { forRequest } from "../runtime/log.ts";
import { type Repeated, repeat, within } from "../runtime/repeat.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { DECISION_LIMITS, WITHDRAWAL_LIMITS } from "./limits.ts";
import * as sql from "./sql/import-decisions.ts";
import { closedPeriodOf } from "./sql/periods.ts";

export type DecisionDeps = Pick<ReconciliationDeps, "database" | "longDatabase" | "log" | "underWay">;

type DecisionRequest = RequestOf<typeof bus.releaseImport>;

/** Refuses with `permission_denied`, `not_found`, `busy`, or `conflict` with a reason of `IMPORT_CONFLICTS`. */
export const releaseImport: Handler<DecisionDeps, typeof bus.releaseImport> = async (deps, request) => {
  const released = await decide(deps, request, async (tx, row, decision) => {
    if (row.released_by === decision.by && row.release_reason === decision.reason) return row;
    if (row.status !== "held") throw statusConflict(row);
    return await sql.releaseImport(tx, decision);
  });
  return { import: decidedOf(released) };
};

/** Refuses as `releaseImport` does. */
export const withdrawImport: Handler<DecisionDeps, typeof bus.withdrawImport> = async (deps, request) => {
  const stored = await decide(deps, request, async (tx, row, decision) => {
    if (row.withdrawn_by === decision.by && row.withdrawal_reason === decision.reason) return row;
    if (row.status === "refused" || row.status === "withdrawing" || row.status === "withdrawn")
      throw statusConflict(row);
    await requireOpenPeriod(tx, row);
    return await sql.beginWithdrawal(tx, decision);
  });
  if (stored.status === "withdrawn") return { import: decidedOf(stored) };
  const { firstMs, answerMs } = WITHDRAWAL_LIMITS;
  await within(carryOut(deps, stored.import_id, firstMs), answerMs);
  const { organization_id: organizationId, import_id: importId } = stored;
  return { import: decidedOf(existing(await sql.findDecidedImport(deps.database, { organizationId, importId }))) };
};

async function requireOpenPeriod(tx: Transaction, { import_id: importId }: sql.DecidedRow): Promise<void> {
  const closed = await closedPeriodOf(tx, importId);
  if (closed === undefined) return;
  const { closingId, kind, fromDate } = closed;
  const detail = `The ${kind} of ${fromDate} is closed with this file, by closing ${closingId}.`;
  throw new RefusedError({ code: "conflict", reason: "period_closed", detail });
}

async function decide(
  { database }: DecisionDeps,
  { caller, importId, reason }: DecisionRequest,
  work: (tx: Transaction, row: sql.DecidedRow, decision: sql.Decision) => Promise<sql.DecidedRow>,
): Promise<sql.DecidedRow> {
  const { organizationId, userId: by } = requirePermission(caller, "reconciliation.manage");
  const { lockWaitMs: waitMs, retryMs: retryAfterMs } = DECISION_LIMITS;
  try {
    return await database.begin(async (tx) => {
      const row = existing(await sql.lockDecidedImport(tx, { organizationId, importId, waitMs }));
      return await work(tx, row, { importId, by, reason });
    });
  } catch (error) {
    if (isLockTimeout(error)) throw new RefusedError({ code: "busy", retryAfterMs });
    throw error;
  }
}

function statusConflict({ status }: sql.DecidedRow): RefusedError {
  return new RefusedError({ code: "conflict", reason: `import_${status}`, detail: STATUS_SENTENCES[status] });
}

const STATUS_SENTENCES: Readonly<Record<bus.ImportStatus, string>> = {
  needs_format: "This import waits for its format; confirm it first.",
  waiting: "This import is not held: it waits for its turn.",
  importing: "This import is not held: it is under way.",
  held: "This import is held.",
  imported: "This import is not held: it is done.",
  refused: "This file was refused, so nothing of it is stored.",
  withdrawing: "This import is being withdrawn.",
  withdrawn: "This import is withdrawn; upload the file again to import it.",
};

/**
 * Carries out, until stopped, the withdrawals that are stored and not carried out: their process has ended, or a run or an
 * import had their account. Those whose account is free do not wait for the others.
 */
export function startWithdrawals(deps: DecisionDeps): Repeated[] {
  const { log } = deps;
  const { tryMs, triesMs, turnMs, turnsMs } = WITHDRAWAL_LIMITS;
  return [
    repeat({ everyMs: triesMs, what: "withdrawing imports", log }, () => carryOutWithdrawals(deps, tryMs)),
    repeat({ everyMs: turnsMs, what: "withdrawing imports in turn", log }, () => carryOutWithdrawals(deps, turnMs)),
  ];
}

/** One after the other. Skips a withdrawal whose account does not become free within `waitMs`. */
export async function carryOutWithdrawals(deps: DecisionDeps, waitMs: number): Promise<void> {
  for (const { importId, requestId } of await sql.listWithdrawing(deps.database))
    await forRequest(requestId, () => carryOut(deps, importId, waitMs));
}

/** Never rejects: what fails is tried again with the next `carryOutWithdrawals`. */
function carryOut(deps: DecisionDeps, importId: number, waitMs: number): Promise<void> {
  const done = deps.longDatabase
    .begin(async (tx) => {
      const row = await sql.takeWithdrawal(tx, { importId, waitMs });
      if (row === undefined) return;
      const ended = await sql.withdrawImport(tx, row);
      await recordEndedIssues(tx, row, ended);
    })
    .catch((error: unknown) => {
      // A run or an import has had the account during the whole wait.
      if (isLockTimeout(error)) return;
      if (!(error instanceof WorkStoppedError)) deps.log.error({ err: error, importId }, "a withdrawal failed");
    });
  deps.underWay.add(done);
  return done.finally(() => deps.underWay.delete(done));
}

/** The audit log and the event of each issue that has ended, under the name of the person who has withdrawn the import. */
async function recordEndedIssues(
  tx: Transaction,
  row: sql.DecidedRow,
  ended: readonly sql.EndedIssue[],
): Promise<void> {
  const { organization_id: organizationId, import_id: importId, withdrawal_reason: reason } = row;
  const userId = row.withdrawn_by ?? 0;
  const person = await sql.findPerson(tx, { organizationId, userId });
  const actor = person === undefined ? SYSTEM : personActor({ ...person, userId });
  const steps = ended.map((issue) => ({
    issue,
    actor,
    action: "ended" as const,
    data: { kind: issue.kind, reason, import_id: importId },
  }));
  await recordSteps(tx, steps);
  await announceIssues(tx, "issues_closed", ended);
}

function decidedOf(row: sql.DecidedRow): bus.DecidedImport {
  const { released_by: releasedBy, released_at: releasedAt, release_reason: releaseReason } = row;
  const { withdrawn_by: withdrawnBy, withdrawn_at: withdrawnAt, withdrawal_reason: withdrawalReason } = row;
  return {
    importId: row.import_id,
    accountId: row.account_id,
    status: row.status,
    released: decisionOf(releasedBy, releasedAt, releaseReason),
    withdrawn: decisionOf(withdrawnBy, withdrawnAt, withdrawalReason),
  };
}

function decisionOf(by: number | null, at: Date | null, reason: string | null): bus.ImportDecision {
  return by === null ? null : { by, atMs: at?.getTime() ?? 0, reason: reason ?? "" };
}
