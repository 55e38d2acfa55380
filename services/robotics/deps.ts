/** What the parts of the robotics service work with. */
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import type { RoboticsFigures } from "./figures.ts";

export interface RoboticsDeps {
  readonly database: Database;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  readonly figures: RoboticsFigures;
  /** How long a task that has ended can still be read. */
  readonly retentionDays: number;
}
