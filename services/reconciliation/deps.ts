/** What the parts of the reconciliation service work with. */
import type { Handler } from "../bus/operation.ts";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import type { RunMetrics } from "./metrics.ts";

export interface ReconciliationDeps {
  /** For statements that take milliseconds. */
  readonly database: Database;
  /** For statements over a whole file or a whole run; each run or import keeps one of its connections. */
  readonly longDatabase: Database;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  readonly metrics: RunMetrics;
  /** Work that continues after the reply to its request; the service waits for it when it stops. */
  readonly underWay: Set<Promise<void>>;
  /** Those of `underWay` that are runs which people have started. */
  readonly startedRuns: Set<Promise<void>>;
}

export type ReconciliationHandler<TOperation> = Handler<ReconciliationDeps, TOperation>;
