/** What the handlers of the providers service work with. */
import type { Bus } from "../bus/connection.ts";
import type { ProviderKind } from "../bus/messages/provider-configs.ts";
import type { SwitchesReplica } from "../bus/switches-replica.ts";
import type { Database } from "../db/pool.ts";
import type { FairSlots } from "../runtime/fair-slots.ts";
import type { Keyring } from "../runtime/keyring.ts";
import type { Log } from "../runtime/log.ts";
import type { Adapters } from "./adapters/adapter.ts";
import type { CallbackConfigs } from "./callback-configs.ts";
import type { ProviderMetrics } from "./metrics.ts";
import type { RefusalThrottle } from "./refusal-throttle.ts";
import type { TaskRunner } from "./task-runner.ts";

export interface ProvidersDeps {
  readonly bus: Bus;
  readonly database: Database;
  readonly log: Log;
  readonly metrics: ProviderMetrics;
  readonly keyring: Keyring;
  readonly adapters: Adapters;
  readonly switches: Pick<SwitchesReplica, "current" | "isTrusted">;
  readonly refusals: RefusalThrottle;
  readonly callbackConfigs: CallbackConfigs;
  /** By config: callbacks whose signature was right by the last reading, and all other callbacks. */
  readonly callbackSlots: FairSlots<number>;
  readonly suspectCallbackSlots: FairSlots<number>;
  /** Calls for new payments, by config; the configs of one kind call the same server. */
  readonly creations: FairSlots<number, ProviderKind>;
  readonly tasks: TaskRunner;
  /** Where a provider sends its callbacks. */
  readonly callbackUrl: (configId: number) => string;
}
