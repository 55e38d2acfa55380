/** What the parts of the robotics service work with. */
import type { Database } from "../db/pool.ts";
import type { RoboticsMetrics } from "./metrics.ts";

export interface RoboticsDeps {
  readonly database: Database;
  readonly metrics: RoboticsMetrics;
  /** How long a task that has ended can still be read. */
  readonly retentionDays: number;
}
