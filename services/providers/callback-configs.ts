/**
 * Configs and their callback secrets, for the checks of callbacks. The check of a callback uses a reading that begins
 * after the callback has arrived, so that a rotation counts at once. One reading at a time serves all callbacks that
 * wait, so that a flood of callbacks causes only one short query at a time.
 */
import type { Database } from "../db/pool.ts";
import type { Keyring } from "../runtime/keyring.ts";
import { CALLBACK_SECRET } from "./adapters/adapter.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { liveSecretsOf } from "./secrets.ts";
import { type ConfigRow, listConfigIdsAfter, listConfigsById } from "./sql/configs.ts";

interface CallbackConfig {
  readonly config: ConfigRow;
  /** The live callback secrets, the newest first. */
  readonly secrets: readonly string[];
}

/** What the check of a signature needs. */
export interface CallbackKeys {
  readonly kind: ConfigRow["kind"];
  readonly secrets: readonly string[];
}

export interface CallbackConfigs {
  /** The keys as this process has last read them; undefined when it never has. They may be out of date. */
  lastRead(configId: number): CallbackKeys | undefined;
  /** Reads the configs that were added since the last call, so that `lastRead` knows each soon after it was created. */
  readNew(): Promise<void>;
  /** Returns the config from a reading that begins after this call; undefined when there is no such config. */
  read(configId: number): Promise<CallbackConfig | undefined>;
}

type Reading = Promise<ReadonlyMap<number, CallbackConfig>>;

export function createCallbackConfigs(deps: {
  readonly database: Database;
  readonly keyring: Keyring;
}): CallbackConfigs {
  const last = new Map<number, CallbackKeys>();
  let newestId = 0;
  let underWay: Reading | undefined;
  let next: { readonly ids: Set<number>; readonly reading: Reading } | undefined;

  const readAll = async (ids: readonly number[]): Reading => {
    const [configs, secrets] = await Promise.all([listConfigsById(deps.database, ids), liveSecretsOf(deps, ids)]);
    const found = new Map<number, CallbackConfig>();
    for (const config of configs) {
      const { config_id: configId } = config;
      found.set(configId, { config, secrets: secrets.get(configId)?.[CALLBACK_SECRET] ?? [] });
    }
    for (const id of ids) keep(id, found.get(id));
    return found;
  };
  const keep = (configId: number, config: CallbackConfig | undefined): void => {
    last.delete(configId);
    if (config === undefined) return;
    last.set(configId, { kind: config.config.kind, secrets: config.secrets });
    const [oldest] = last.keys();
    if (last.size > PROVIDER_LIMITS.callbackConfigs && oldest !== undefined) last.delete(oldest);
  };
  const scheduleNext = (): { readonly ids: Set<number>; readonly reading: Reading } => {
    const ids = new Set<number>();
    const begin = async (): Reading => {
      // Begins also after a reading that has failed.
      await underWay?.catch(() => undefined);
      next = undefined;
      underWay = readAll([...ids]);
      return await underWay;
    };
    return { ids, reading: begin() };
  };
  return {
    lastRead: (configId) => last.get(configId),
    async readNew() {
      for (;;) {
        const ids = await listConfigIdsAfter(deps.database, newestId, PROVIDER_LIMITS.callbackConfigsPerReading);
        if (ids.length === 0) return;
        await readAll(ids);
        newestId = ids.at(-1) ?? newestId;
      }
    },
    async read(configId) {
      next ??= scheduleNext();
      next.ids.add(configId);
      return (await next.reading).get(configId);
    },
  };
}
