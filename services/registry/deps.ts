/** What each handler of the registry gets beside its request, and the wait for the delivery of its outbox rows. */
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { flushKeys } from "../bus/flush-outbox.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import type { ClaimNow, FailureLog, Handler, ReplyOf, RequestOf } from "../bus/operation.ts";
import type { OutboxKey } from "../db/outbox.ts";
import type { Database } from "../db/pool.ts";
import type { SigningKey } from "../runtime/signing-key.ts";
import type { DatabaseShares } from "./database-shares.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import type { RegistryMetrics } from "./metrics.ts";
import type { Passwords } from "./passwords.ts";
import type { RegistrySettings } from "./settings.ts";

/** One wide line per unit of work; pino fits. */
interface RegistryLog extends FailureLog {
  info(fields: object, message: string): void;
}

export interface RegistryDeps {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly sql: Database;
  /** The database connections that log-ins and enrollments may use. */
  readonly shares: DatabaseShares;
  readonly log: RegistryLog;
  readonly settings: RegistrySettings;
  readonly passwords: Passwords;
  readonly loginThrottle: LoginThrottle;
  readonly metrics: RegistryMetrics;
  readonly conformance: Conformance;
  /** Signs certification artifacts; undefined where the installation has no such key. */
  readonly certificationKey: SigningKey | undefined;
}

/** The conformance suite in separate processes. */
export interface Conformance {
  readonly hasPlace: boolean;
  start(run: StartedRun): void;
}

export interface StartedRun {
  readonly runId: number;
  readonly sandboxId: number;
  /** The token of the session that the run acts with. */
  readonly token: string;
  /** Called once the run has ended, whatever its result. */
  readonly onEnd: () => Promise<void>;
}

export type RegistryHandler<TOperation> = Handler<RegistryDeps, TOperation>;

/** A handler of an operation that anyone may call. It claims the request before its first change. */
export type ClaimingHandler<TOperation> = (
  deps: RegistryDeps,
  request: RequestOf<TOperation>,
  claimNow: ClaimNow,
) => Promise<ReplyOf<TOperation>>;

/** Asks the relay to deliver these keys now. Resolves to the positions that a replica must reach to show the change. */
export async function flush(
  { nc, log }: Pick<RegistryDeps, "nc" | "log">,
  ...keys: readonly OutboxKey[]
): Promise<Barrier> {
  return await flushKeys({ nc, log, timeoutMs: REGISTRY_LIMITS.flushTimeoutMs }, keys);
}
