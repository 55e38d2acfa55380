/** What the parts of the webhook signer work with. */
import type { Bus } from "../bus/connection.ts";
import type { Database } from "../db/pool.ts";
import type { Keyring } from "../runtime/keyring.ts";
import type { Log } from "../runtime/log.ts";
import type { Clock } from "./clock.ts";
import type { TestPlaces } from "./endpoints/test-places.ts";
import type { SignerFigures } from "./figures.ts";
import type { Sender } from "./http/send-result.ts";

export interface SignerDeps {
  readonly bus: Bus;
  readonly database: Database;
  readonly log: Log;
  readonly clock: Clock;
  readonly keyring: Keyring;
  readonly sender: Sender;
  /** Whether endpoints of `test` consumers may be on a loopback address. */
  readonly allowLoopback: boolean;
  /** How long a delivery that is done with can be read again. */
  readonly retentionDays: number;
  readonly figures: SignerFigures;
  /** Tells all processes that these owners may have something to send. */
  readonly wake: (organizationIds: readonly number[]) => void;
  /** Places for owners' tests under way. */
  readonly tests: TestPlaces;
}
