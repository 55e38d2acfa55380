/** Runs that start without a person: after an import has ended or was withdrawn, and after a decision about a match. */
import type { Database } from "../db/pool.ts";
import { type Repeated, repeat } from "../runtime/repeat.ts";
import { RUN_LIMITS } from "./limits.ts";
import { RunUnderWayError, runReconciliation } from "./matching.ts";
import * as sql from "./sql/wanted-runs.ts";

export interface AutomaticRunDeps {
  readonly database: Database;
  /** Its statements may take as long as a run does. */
  readonly longDatabase: Database;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

const DEAD = "The process of the run has ended.";

/** One after the other in each process, until stopped. */
export function startAutomaticRuns(deps: AutomaticRunDeps): Repeated {
  const { log } = deps;
  return repeat({ everyMs: RUN_LIMITS.wantedIntervalMs, what: "starting runs after imports", log }, async (signal) => {
    await deps.database.begin((tx) => sql.endDeadRuns(tx, DEAD));
    while (!signal.aborted && (await runNext(deps))) {
      // Until no account waits.
    }
  });
}

/** Carries out the run that waits longest. False when there is none; a run that fails is tried again later. */
export async function runNext(
  { database, longDatabase, log }: AutomaticRunDeps,
  { quietMs }: { readonly quietMs: number } = RUN_LIMITS,
): Promise<boolean> {
  const aroundDays = RUN_LIMITS.lookBackDays;
  const wanted = await sql.findWantedRun(database, { ...RUN_LIMITS, quietMs, aroundDays });
  if (wanted === undefined) return false;
  const { organizationId, accountId, fromDate, toDate } = wanted;
  try {
    const days = { organizationId, accountId, fromDate, toDate };
    const runId = await runReconciliation(longDatabase, { ...days, startedBy: null });
    await sql.endWantedRun(database, wanted);
    log.info({ runId, accountId }, "run done");
  } catch (error) {
    // A person, or another process, has begun one: this one waits.
    if (error instanceof RunUnderWayError) return false;
    await sql.countFailure(database, wanted);
    log.warn({ err: error, accountId }, "run failed");
  }
  return true;
}
