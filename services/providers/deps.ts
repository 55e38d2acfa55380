/** What the parts of the providers service work with. */
import type { Bus } from "../bus/connection.ts";
import type { SwitchesReplica } from "../bus/switches-replica.ts";
import type { Database } from "../db/pool.ts";
import type { FairSlots } from "../runtime/fair-slots.ts";
import type { Keyring } from "../runtime/keyring.ts";
import type { Log } from "../runtime/log.ts";
import type { Adapters } from "./adapters/adapters.ts";
import type { CallbackConfigs } from "./callbacks/callback-configs.ts";
import type { RefusalThrottle } from "./callbacks/refusal-throttle.ts";
import type { ProviderFigures } from "./figures.ts";
import type { TaskRunner } from "./tasks/task-runner.ts";

export interface ProvidersDeps {
  readonly bus: Bus;
  readonly database: Database;
  readonly log: Log;
  readonly figures: ProviderFigures;
  readonly keyring: Keyring;
  readonly adapters: Adapters;
  readonly switches: Pick<SwitchesReplica, "current" | "isTrusted">;
  readonly refusals: RefusalThrottle;
  readonly callbackConfigs: CallbackConfigs;
  /** By config: callbacks whose signature was right by the last reading, all other callbacks, and new payments. */
  readonly callbackSlots: FairSlots<number>;
  readonly doubtfulCallbackSlots: FairSlots<number>;
  readonly creations: FairSlots<number>;
  readonly tasks: TaskRunner;
  /** Tells stations of their config at once. */
  readonly tellStations: () => Promise<void>;
  /** Where a provider sends its callbacks. */
  readonly callbackUrl: (configId: number) => string;
}
