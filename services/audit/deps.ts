/** What the parts of the audit service work with. */
import type { Bus } from "../bus/connection.ts";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";

export interface AuditDeps {
  readonly bus: Bus;
  readonly database: Database;
  readonly log: Log;
}
