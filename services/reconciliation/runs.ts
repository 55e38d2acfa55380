/** Runs as operations: start, progress, list, and what has changed since the run before. */
import { setTimeout as delay } from "node:timers/promises";
import { requirePermission } from "../bus/messages/caller.ts";
import { ISSUE_KINDS } from "../bus/messages/issues.ts";
import type * as bus from "../bus/messages/reconciliation-runs.ts";
import { RUN_STEPS } from "../bus/messages/reconciliation-runs.ts";
import type { Handler } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, invalidField, RefusedError } from "../bus/refusals.ts";
import { WorkStoppedError } from "../db/stoppable.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { RUN_LIMITS } from "./limits.ts";
import { wordIn } from "./matches.ts";
import { isRefusal, NoSuchAccountError, type RunRequest, RunUnderWayError, runReconciliation } from "./matching.ts";
import { measureRun } from "./metrics.ts";
import * as sql from "./sql/runs.ts";

type RunDeps = Pick<ReconciliationDeps, "database" | "longDatabase" | "log" | "metrics" | "underWay" | "startedRuns">;

const DAY_MS = 24 * 3_600_000;

/**
 * Without days the run is about all that imported statements cover. Refuses with `permission_denied`, `not_found`, and
 * `conflict` with a reason of `RUN_CONFLICTS`.
 */
export const startRun: Handler<RunDeps, typeof bus.startRun> = async (deps, { caller, accountId, ...days }) => {
  const { organizationId, userId: startedBy } = requirePermission(caller, "reconciliation.manage");
  const covered = existing(await sql.findCoveredDays(deps.database, { organizationId, accountId }));
  const { fromDate = covered.from_date, toDate = covered.to_date } = days;
  if (fromDate === null || toDate === null) {
    throw conflict("nothing_imported", "The account has no imported statement: import one, or name the days.");
  }
  if (Date.parse(toDate) < Date.parse(fromDate)) {
    throw invalidField("/to_date", "ends_before_start", "Must not be before from_date.");
  }
  if ((Date.parse(toDate) - Date.parse(fromDate)) / DAY_MS >= RUN_LIMITS.daysOfRun) {
    throw conflict("too_many_days", `A run is about ${RUN_LIMITS.daysOfRun} days at most.`);
  }
  if (deps.startedRuns.size >= RUN_LIMITS.runsAtOnce) {
    throw conflict("too_many_runs", "Several runs are under way here: try again when one of them is done.");
  }
  try {
    const runId = await beginInTurn(deps, { organizationId, accountId, fromDate, toDate, startedBy });
    return await readRun(deps, organizationId, runId);
  } catch (error) {
    if (error instanceof RunUnderWayError) throw conflict("run_under_way", error.message);
    if (error instanceof NoSuchAccountError) throw new RefusedError({ code: "not_found" });
    if (error instanceof WorkStoppedError) throw new RefusedError({ code: "unavailable" });
    throw error;
  }
};

type Conflict = (typeof bus.RUN_CONFLICTS | typeof bus.COMPARISON_CONFLICTS)[number];
const conflict = (reason: Conflict, detail: string): RefusedError =>
  new RefusedError({ code: "conflict", reason, detail });

/** The run that follows an import is usually short, so a person's request waits for its end. */
async function beginInTurn(deps: RunDeps, request: RunRequest): Promise<number> {
  const endsAtMs = performance.now() + RUN_LIMITS.turnMs;
  for (;;) {
    try {
      return await begin(deps, request);
    } catch (error) {
      if (!(error instanceof RunUnderWayError) || performance.now() > endsAtMs) throw error;
    }
    await delay(RUN_LIMITS.turnPollMs);
  }
}

/** Resolves when the run is stored; the run continues in the background. */
async function begin(deps: RunDeps, request: RunRequest): Promise<number> {
  const { accountId } = request;
  const started = Promise.withResolvers<number>();
  const whole = measureRun(deps.metrics, "person", () => runReconciliation(deps, request, started.resolve)).then(
    (runId) => deps.log.info({ runId, accountId }, "run done"),
    (error: unknown) => {
      started.reject(error);
      if (!isRefusal(error)) deps.log.error({ err: error, accountId }, "run failed");
    },
  );
  for (const known of [deps.underWay, deps.startedRuns]) {
    known.add(whole);
    void whole.finally(() => known.delete(whole));
  }
  return await started.promise;
}

/** Refuses with `not_found`. */
export const getRun: Handler<RunDeps, typeof bus.getRun> = async (deps, { caller, runId }) => {
  requirePermission(caller, "reconciliation.manage");
  return await readRun(deps, caller.organizationId, runId);
};

async function readRun(deps: RunDeps, organizationId: number, runId: number): Promise<{ run: bus.Run }> {
  const row = existing(await sql.getRun(deps.database, { organizationId, runId }));
  return { run: runOf(row) };
}

export const listRuns: Handler<RunDeps, typeof bus.listRuns> = async (deps, { caller, accountId, beforeId, limit }) => {
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const rows = await sql.listRuns(deps.database, { organizationId, accountId, beforeId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(runOf), limit);
  return { runs: page, hasMore };
};

/**
 * Refuses with `not_found`, also for runs of two accounts, and with `conflict` and a reason of `COMPARISON_CONFLICTS`.
 */
export const compareRuns: Handler<RunDeps, typeof bus.compareRuns> = async (deps, request) => {
  const { caller, runId, previousRunId: asked, change, afterIssueId, limit } = request;
  requirePermission(caller, "reconciliation.manage");
  const { run } = await readRun(deps, caller.organizationId, runId);
  await requireDifferences(deps, run);
  const previousRunId = asked ?? run.previousRunId;
  if (previousRunId !== null) {
    const { run: other } = await readRun(deps, caller.organizationId, previousRunId);
    if (other.accountId !== run.accountId) throw new RefusedError({ code: "not_found" });
    await requireDifferences(deps, other);
  }
  const pair = { runId, previousRunId: previousRunId ?? 0 };
  const counts = await sql.countChanges(deps.database, pair);
  const rows = await sql.listChanges(deps.database, { ...pair, change, afterIssueId, limit: limit + 1 });
  const differences = rows.slice(0, limit).map((row) => ({
    issueId: row.issue_id,
    kind: wordIn(ISSUE_KINDS, row.kind),
    amountMinor: row.amount_minor,
    currency: row.currency,
    onDate: row.on_date,
  }));
  return { previousRunId, counts, differences, hasMore: rows.length > limit };
};

/** A run that is not done has no differences, and those of an old one are deleted: all would be new or gone without a cause. */
async function requireDifferences({ database }: RunDeps, { runId, status, differences }: bus.Run): Promise<void> {
  if (status !== "done") {
    const next = status === "running" ? "wait until it is done" : "name another one";
    throw conflict("run_not_done", `Run ${runId} has no result: ${next}.`);
  }
  if ((await sql.countDifferences(database, runId)) < differences) {
    const detail = `The differences of run ${runId} are deleted after ${RUN_LIMITS.runRetentionDays} days: name a newer one.`;
    throw conflict("differences_deleted", detail);
  }
}

function runOf(row: sql.RunRow): bus.Run {
  return {
    runId: row.run_id,
    accountId: row.account_id,
    fromDate: row.from_date,
    toDate: row.to_date,
    status: row.status,
    step: wordIn(RUN_STEPS, row.step),
    startedBy: row.started_by,
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
    failure: row.failure,
    previousRunId: row.previous_run_id,
    coveredFrom: row.covered_from,
    coveredTo: row.covered_to,
    lines: row.lines,
    payments: row.payments,
    matched: row.matched,
    differing: row.differing,
    rejected: row.rejected,
    differences: row.differences,
    totals: [...row.totals],
    inputHash: row.input_hash,
    resultHash: row.result_hash,
  };
}
