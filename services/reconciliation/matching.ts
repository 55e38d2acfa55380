/**
 * One run: everything that is imported of an account for some days is compared with what stations have settled and callbacks
 * have reported. The whole run is one transaction, so that a crash leaves none of it. SQL does the work on whole sets; this
 * process reads no rows.
 *
 *   lines and payments ──► links by reference ──► confirmed, exact pairs, exact sums ──► differences ──► issues
 *
 * The same lines and payments give the same result, in whatever order they were imported. Only the names of payouts that share
 * a reference follow that order.
 */
import type { Database, Transaction } from "../db/pool.ts";
import { WorkStoppedError } from "../db/stoppable.ts";
import { announceIssues, recordEnded } from "../issues/recording.ts";
import type { RaisedIssue } from "../issues/sql/raise.ts";
import * as candidates from "./sql/run-candidates.ts";
import * as differences from "./sql/run-differences.ts";
import * as grouped from "./sql/run-grouped.ts";
import * as inputs from "./sql/run-inputs.ts";
import * as issues from "./sql/run-issues.ts";
import * as matches from "./sql/run-matches.ts";
import * as results from "./sql/run-results.ts";
import * as sql from "./sql/runs.ts";
import { endWantedRun, findVersionWithin, wantRun } from "./sql/wanted-runs.ts";

/** Another run of the account is under way. */
export class RunUnderWayError extends Error {
  constructor() {
    super("Another run of this account is under way.");
    this.name = "RunUnderWayError";
  }
}
/** The organization has no such account. */
export class NoSuchAccountError extends Error {}

/** Whether the run was refused, or stopped with its process; it then counts neither as done nor as failed. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof RunUnderWayError || error instanceof NoSuchAccountError || error instanceof WorkStoppedError;

export interface RunRequest {
  readonly organizationId: number;
  readonly accountId: number;
  readonly fromDate: string;
  readonly toDate: string;
  /** Null: it starts by itself, after an import has ended. */
  readonly startedBy: number | null;
}

interface MatchingDeps {
  /** For the run's record and its progress, which are visible while the run is under way. */
  readonly database: Database;
  /** For the run itself: its statements may take as long as it does. */
  readonly longDatabase: Database;
}

/** The steps of a run, in their order, by the name that its progress shows. */
const STEPS: readonly (readonly [string, (tx: Transaction, scope: sql.RunScope) => Promise<void>])[] = [
  ["lines", results.removeBrokenMatches],
  ["lines", inputs.loadRunInputs],
  ["links", inputs.linkByReference],
  ["exact", matches.matchConfirmed],
  ["exact", issues.matchAttributed],
  ["exact", matches.pairExact],
  ["exact", matches.findTerminals],
  ["exact", matches.judgePairs],
  ["exact", matches.matchSums],
  ["exact", matches.matchShares],
  ["exact", matches.matchBatches],
  ["differences", differences.judgeByKind],
  ["differences", differences.judgeNamedPayouts],
  ["differences", differences.judgeLinked],
  ["differences", differences.judgePossibleDuplicates],
  ["candidates", issues.keepDecided],
  ["candidates", candidates.judgeCandidates],
  ["candidates", grouped.judgeGrouped],
  ["candidates", differences.judgeUnmatched],
  ["candidates", differences.judgeMissing],
  ["matches", results.writeMatches],
];

/**
 * Carries a run out, and ends the account's request for a run over these days. `onStarted` gets its id as soon as it is stored.
 * Throws `RunUnderWayError` and `NoSuchAccountError` before anything is stored; a run that fails later, or whose process stops, is
 * stored as failed.
 */
export async function runReconciliation(
  { database, longDatabase }: MatchingDeps,
  request: RunRequest,
  onStarted: (runId: number) => void = () => undefined,
): Promise<number> {
  let runId: number | undefined;
  // What is wanted after this moment may be about lines that the run does not read.
  const version = await findVersionWithin(database, request);
  try {
    await longDatabase.begin(async (tx) => {
      if (!(await sql.lockAccount(tx, request.accountId))) throw new RunUnderWayError();
      const scope = await sql.insertRun(database, request);
      if (scope === undefined) throw new NoSuchAccountError("The organization has no such account.");
      ({ runId } = scope);
      onStarted(scope.runId);
      await sql.lockOrganization(tx, scope.organizationId);
      await inputs.createRunTables(tx);
      await carryOut(database, tx, scope);
    });
  } catch (error) {
    if (runId !== undefined) await endUnfinished(database, { ...request, runId }, error);
    throw error;
  }
  if (runId === undefined) throw new Error("The run has no id.");
  if (version !== undefined) await endWantedRun(database, { accountId: request.accountId, version });
  return runId;
}

async function carryOut(database: Database, tx: Transaction, scope: sql.RunScope): Promise<void> {
  let shown = "";
  const show = async (step: string): Promise<void> => {
    if (step !== shown) await sql.writeStep(database, scope.runId, step);
    shown = step;
  };
  for (const [step, work] of STEPS) {
    await show(step);
    await work(tx, scope);
  }
  await show("issues");
  const { raised, ended } = await issues.raiseDifferences(tx, scope);
  await results.writeOutcomes(tx, scope);
  await results.writeCandidates(tx, scope);
  await results.summarize(tx, scope);
  await sql.endRun(tx, scope.runId, null);
  await recordEnded(tx, ended, issues.EXPLAINED);
  const { organizationId } = scope;
  const withOutcome = (...outcomes: readonly RaisedIssue["outcome"][]) =>
    raised
      .filter(({ outcome }) => outcomes.includes(outcome))
      .map(({ issueId }) => ({ issue_id: issueId, organization_id: organizationId }));
  await announceIssues(tx, "issues_opened", withOutcome("opened", "superseded", "returned"));
  await announceIssues(tx, "issues_changed", withOutcome("changed"));
}

/** Ends the record of the run. If its process stops, another process repeats the run, or this one after its restart. */
async function endUnfinished(
  database: Database,
  run: RunRequest & Pick<sql.RunScope, "runId">,
  error: unknown,
): Promise<void> {
  await database.begin(async (tx) => {
    await sql.endRun(tx, run.runId, error instanceof WorkStoppedError ? STOPPED : sentenceOf(error));
    // A run that has started by itself stays wanted until it is done.
    if (error instanceof WorkStoppedError && run.startedBy !== null) await wantRun(tx, run);
  });
}

const STOPPED = "The process of the run has stopped; another run of these days starts by itself.";
const sentenceOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 500);
