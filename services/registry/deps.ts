/** What each handler of the registry gets beside its request. */
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import type { z } from "zod";
import type { FailureLog, Operation, ReplyOf, RequestOf } from "../bus/operation.ts";
import type { Database } from "../db/pool.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import type { RegistryMetrics } from "./metrics.ts";
import type { Passwords } from "./passwords.ts";
import type { RegistrySettings } from "./settings.ts";

/** One wide line per unit of work; pino fits. */
export interface RegistryLog extends FailureLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface RegistryDeps {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly sql: Database;
  readonly log: RegistryLog;
  readonly settings: RegistrySettings;
  readonly passwords: Passwords;
  readonly loginThrottle: LoginThrottle;
  readonly metrics: RegistryMetrics;
}

/** Answers one operation. Throws `RefusedError`. */
export type RegistryHandler<TOperation extends Operation<z.ZodType, z.ZodType>> = (
  deps: RegistryDeps,
  request: RequestOf<TOperation>,
) => Promise<ReplyOf<TOperation>>;
