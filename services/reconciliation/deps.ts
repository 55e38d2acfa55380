/** What the parts of the reconciliation service work with. */
import type { Database } from "../db/pool.ts";

export interface ReconciliationDeps {
  readonly database: Database;
}
