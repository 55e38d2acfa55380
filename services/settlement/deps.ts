/** What the handlers of the settlement service work with. */
import type { Bus } from "../bus/connection.ts";
import type { StationLogs } from "../bus/streams.ts";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";

export interface SettlementDeps {
  readonly bus: Bus;
  readonly logs: StationLogs;
  readonly database: Database;
  readonly log: Log;
}
