/** The `deps` of every service, and what its start returns. */
import type { Registry } from "prom-client";
import type { Bus } from "../bus/connection.ts";
import type { StationLogs } from "../bus/streams.ts";
import type { Log } from "./log.ts";
import type { SharedSettings } from "./settings.ts";

export interface ServiceDeps {
  readonly bus: Bus;
  /** The stations' logs on this bus. */
  readonly logs: StationLogs;
  readonly log: Log;
  readonly settings: SharedSettings;
  /** Where a service adds its metrics; undefined while nothing collects them. */
  readonly metrics?: Registry | undefined;
  /**
   * The most connections to PostgreSQL that it may open; undefined when the process has not divided them. Then the
   * service's own limits apply.
   */
  readonly connections?: number | undefined;
  /** For the settings that only this service has; parse them with `parseSettings`. */
  readonly environment: NodeJS.ProcessEnv;
  /** Ends the process with this error; undefined in another kind of process, for example a test. */
  readonly fail?: ((error: unknown) => void) | undefined;
}

export interface Service {
  /** Takes no more work, and completes or answers the work under way. */
  stop(): Promise<void>;
}
