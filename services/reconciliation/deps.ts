/** What the parts of the reconciliation service work with. */
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import type { RunMetrics } from "./metrics.ts";

export interface ReconciliationDeps {
  /** For statements of milliseconds. */
  readonly database: Database;
  /** For the statements over a whole file or a whole run; each run or import has one connection of it. */
  readonly longDatabase: Database;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  readonly metrics: RunMetrics;
  /** Work that goes on after its request was answered; the service waits for it when it stops. */
  readonly underWay: Set<Promise<void>>;
  /** Of it, the runs that people have started. */
  readonly startedRuns: Set<Promise<void>>;
}
