/** Runs that start without a person: after an import has ended or was withdrawn, and after a decision about a match. */
import { WorkStoppedError } from "../db/stoppable.ts";
import { type Repeated, repeat } from "../runtime/repeat.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { RUN_LIMITS } from "./limits.ts";
import { RunUnderWayError, runReconciliation } from "./matching.ts";
import { measureRun } from "./metrics.ts";
import { isDiskFull } from "./space.ts";
import * as sql from "./sql/wanted-runs.ts";

interface AutomaticRunDeps extends Pick<ReconciliationDeps, "database" | "longDatabase" | "log" | "metrics"> {
  /** While it is true no run begins. */
  readonly isShortOfSpace?: () => boolean;
}

const PROCESS_ENDED = "The process of the run has ended.";

/** Carries out the runs that wait, one after the other in each process, until stopped. */
export function startAutomaticRuns(deps: AutomaticRunDeps): Repeated {
  const { log } = deps;
  return repeat({ everyMs: RUN_LIMITS.wantedIntervalMs, what: "starting runs after imports", log }, async (signal) => {
    if (!(await sql.hasRunOrWanted(deps.database))) return;
    await sql.endDeadRuns(deps.database, PROCESS_ENDED);
    const busy = new Set<number>();
    while (!signal.aborted && (await runNext(deps, { busy }))) {
      // Until no account waits.
    }
  });
}

/**
 * Carries out the run that waits longest. False when there is none, no space for it, or the process stops; a run that fails is
 * tried again later. `busy`: accounts of which a run, or the withdrawal of an import, is under way; the others do not wait for
 * them.
 */
export async function runNext(
  deps: AutomaticRunDeps,
  { busy, ...quiet }: { readonly busy: Set<number>; readonly quietMs?: number; readonly followerQuietMs?: number },
): Promise<boolean> {
  const { database, log, metrics, isShortOfSpace } = deps;
  if (isShortOfSpace?.() === true) return false;
  const wanted = await sql.findWantedRun(database, { ...RUN_LIMITS, ...quiet, except: [...busy] });
  if (wanted === undefined) return false;
  const { organizationId, accountId, fromDate, toDate } = wanted;
  try {
    const days = { organizationId, accountId, fromDate, toDate };
    const request = { ...days, startedBy: null };
    const runId = await measureRun(metrics, "itself", () => runReconciliation(deps, request));
    log.info({ runId, accountId }, "run done");
  } catch (error) {
    if (error instanceof WorkStoppedError) return false;
    if (error instanceof RunUnderWayError) busy.add(accountId);
    else {
      // A full disk is no fault of the run.
      if (isDiskFull(error)) await sql.postponeRun(database, { accountId, attempts: RUN_LIMITS.attempts });
      else await sql.countFailure(database, wanted);
      log.warn({ err: error, accountId }, "run failed");
    }
  }
  return true;
}
