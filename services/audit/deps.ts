/** The dependencies of the parts of the audit service. */
import type { JetStreamManager } from "@nats-io/jetstream";
import type { Bus } from "../bus/connection.ts";
import type { StationLogs } from "../bus/streams.ts";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";

export interface AuditDeps {
  readonly bus: Bus;
  /** Asks the leaders of the streams, and does not wait for a server that is away. */
  readonly jsm: JetStreamManager;
  /** The stations' logs on this bus. */
  readonly logs: StationLogs;
  readonly database: Database;
  readonly log: Log;
}
