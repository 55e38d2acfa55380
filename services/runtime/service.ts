/** What every service is given, and what it gives back. */
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
  /** The most connections to PostgreSQL that it may open; its own limits count where a process has divided none. */
  readonly connections?: number | undefined;
  /** For the settings that only this service has; parse them with `parseSettings`. */
  readonly environment: NodeJS.ProcessEnv;
  /** Ends the process with this error; undefined where the service runs in a process of another kind, as in tests. */
  readonly fail?: ((error: unknown) => void) | undefined;
}

export interface Service {
  /** Ends in good order: nothing new is taken, what is under way is finished or answered. */
  stop(): Promise<void>;
}
