/** What telling a page of anything works with and comes to. */
import type { NatsConnection } from "nats";
import type { StationLogs } from "../../bus/streams.ts";
import type { Database } from "../../db/pool.ts";
import type { Log } from "../../runtime/log.ts";
import type { BucketDeps } from "../buckets.ts";

export interface TellDeps extends BucketDeps {
  readonly nc: NatsConnection;
  readonly logs: StationLogs;
  readonly sql: Database;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  /** Throws when another relay may deliver by now: what was read before a stall must not be written after it. */
  readonly requireLease: () => void;
}

export interface Told {
  /** The newest id of the page. */
  readonly through: number;
  readonly hasMore: boolean;
  /** What the bus did not know. */
  readonly news: number;
}
