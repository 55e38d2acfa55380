/** What the parts of the webhook signer work with. */
import type { Bus } from "../bus/connection.ts";
import type { Handler } from "../bus/operation.ts";
import type { Database } from "../db/pool.ts";
import type { Keyring } from "../runtime/keyring.ts";
import type { Log } from "../runtime/log.ts";
import type { Clock } from "./clock.ts";
import type { Sender } from "./http/send-result.ts";
import type { SignerMetrics } from "./metrics.ts";
import type { TestSlots } from "./sending/slots.ts";

export interface SignerDeps {
  readonly bus: Bus;
  readonly database: Database;
  readonly log: Log;
  readonly clock: Clock;
  readonly keyring: Keyring;
  readonly sender: Sender;
  /** Whether endpoints of `test` consumers may be on a loopback address. */
  readonly allowLoopback: boolean;
  readonly metrics: SignerMetrics;
  /** Notifies all processes that these owners may have something to send. */
  readonly wake: (organizationIds: readonly number[]) => void;
  /** Slots for owners' tests under way. */
  readonly tests: TestSlots;
}

export type SignerHandler<TOperation> = Handler<SignerDeps, TOperation>;
