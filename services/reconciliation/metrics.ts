/** Metrics of runs and of what is imported. */
import type { Registry } from "prom-client";
import type { Database } from "../db/pool.ts";
import { addCount, addDuration, addGauge, addGauges, type Count, type Duration } from "../runtime/metrics.ts";
import { sample } from "../runtime/repeat.ts";
import { RUN_LIMITS } from "./limits.ts";
import { isRefusal } from "./matching.ts";
import { summarizeStatements } from "./sql/summary.ts";

const STARTS = ["person", "itself"] as const;
const RESULTS = ["done", "failed"] as const;
/** The outcome of a line in the last run over it. */
const OUTCOMES = ["matched", "differs", "rejected", "not_run"] as const;

export interface RunMetrics {
  readonly runs: Count<"started_by" | "result">;
  readonly runSeconds: Duration<"result">;
}

/** Added before the service answers. */
export function addRunMetrics(registry: Registry | undefined, database: Database): RunMetrics {
  addStatementGauges(registry, database);
  return {
    runs: addCount(registry, {
      name: "reconciliation_runs_total",
      help: "Reconciliation runs, by who has started them and how they ended.",
      labels: { started_by: STARTS, result: RESULTS },
    }),
    runSeconds: addDuration(registry, {
      name: "reconciliation_run_duration_seconds",
      help: "How long a reconciliation run takes.",
      labels: { result: RESULTS },
    }),
  };
}

/** Does not count a run that was refused or stopped (`isRefusal`). */
export async function measureRun(
  { runs, runSeconds }: RunMetrics,
  startedBy: (typeof STARTS)[number],
  run: () => Promise<number>,
): Promise<number> {
  const beganMs = performance.now();
  const end = (result: (typeof RESULTS)[number]): void => {
    runs.add({ started_by: startedBy, result });
    runSeconds.observe({ result }, (performance.now() - beganMs) / 1_000);
  };
  try {
    const runId = await run();
    end("done");
    return runId;
  } catch (error) {
    if (!isRefusal(error)) end("failed");
    throw error;
  }
}

/** Reads again only after `keptMs`: a month of a chain's lines takes a second to count. */
function keptFor<T>(keptMs: number, read: () => Promise<T>): () => Promise<T> {
  let latest: { readonly atMs: number; readonly value: T } | undefined;
  return async () => {
    if (latest === undefined || performance.now() - latest.atMs > keptMs) {
      const value = await read();
      latest = { atMs: performance.now(), value };
    }
    return latest.value;
  };
}

/** Read at each scrape; NaN while the database does not answer. */
function addStatementGauges(registry: Registry | undefined, database: Database): void {
  const summary = sample(
    keptFor(RUN_LIMITS.summaryKeptMs, () => summarizeStatements(database)),
    RUN_LIMITS.summaryMs,
  );
  addGauges(
    registry,
    {
      name: "reconciliation_lines",
      help: "Lines of imported statements of the last 30 days, by what the last run has made of them.",
      labels: ["outcome"],
    },
    async () => {
      const known = await summary();
      return OUTCOMES.map((outcome) => [{ outcome }, known?.lines[outcome] ?? Number.NaN] as const);
    },
  );
  addGauge(
    registry,
    "reconciliation_unmatched_share",
    "The share of those lines that differ, of all that a run has compared; 0 without lines.",
    async () => {
      const known = await summary();
      if (known === undefined) return Number.NaN;
      const compared = known.lines.matched + known.lines.differs + known.lines.rejected;
      return compared === 0 ? 0 : known.lines.differs / compared;
    },
  );
  addGauge(
    registry,
    "reconciliation_runs_wanted_age_seconds",
    "For how long the oldest account waits for its run after an import.",
    async () => (await summary())?.oldestWantedSeconds ?? Number.NaN,
  );
  addGauge(
    registry,
    "reconciliation_lag_seconds",
    "The age of the newest imported statement day, of the account that is furthest behind and had an import within 30 days.",
    async () => (await summary())?.lagSeconds ?? Number.NaN,
  );
}
