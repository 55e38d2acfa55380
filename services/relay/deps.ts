/** What the parts of the relay work with. */
import type { Bus } from "../bus/connection.ts";
import type { StationLogs } from "../bus/streams.ts";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import type { UserError } from "../runtime/user-error.ts";
import type { RelayMetrics } from "./metrics.ts";

export interface RelayDeps {
  readonly bus: Bus;
  /** The stations' logs on this bus. */
  readonly logs: StationLogs;
  readonly sql: Database;
  /** Where the database is, for a person. */
  readonly database: string;
  readonly log: Log;
  readonly metrics: RelayMetrics;
  /** Ends the process with this error. */
  readonly fail: ((error: UserError) => void) | undefined;
}
