/** What the parts of the audit service work with. */
import type { JetStreamManager } from "@nats-io/jetstream";
import type { Bus } from "../bus/connection.ts";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";

/** One of the streams with the stations' commits. */
export interface AuditedLog {
  readonly name: string;
  /** The subjects of its commits; other messages in the stream are not copied. */
  readonly commits: string;
}

export interface AuditedLogs {
  readonly all: readonly AuditedLog[];
  /** The log that holds a station's commits. */
  of(stationId: number): AuditedLog;
  /** The subject of a station's commits. */
  subject(stationId: number): string;
}

export interface AuditDeps {
  readonly bus: Bus;
  /** Asks the leaders of the streams, and does not wait for a server that is away. */
  readonly jsm: JetStreamManager;
  readonly logs: AuditedLogs;
  readonly database: Database;
  readonly log: Log;
}
